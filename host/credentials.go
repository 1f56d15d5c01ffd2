package host

import (
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/driver"
	"github.com/reins-browser/reins/internal/redact"
)

const (
	maxCredentials  = 64   // of one resource
	maxCredentialed = 1024 // bytes of a user or a password
)

// introduce gives a driver, before its first command, what the host has for
// sites that ask for a user and password (NAV-5). Commands meanwhile wait.
func (op *operation) introduce(ctx context.Context, conn *connection, cmd *driver.Command) error {
	hook := op.r.gen.host.hooks.Credentials
	if hook == nil {
		return nil
	}
	select {
	case conn.meeting <- struct{}{}:
		defer func() { <-conn.meeting }()
	case <-ctx.Done():
		return reins.ContextError(ctx)
	}
	if conn.met {
		return nil
	}
	var given []reins.Credential
	err := op.ask(ctx, "Credentials", func(ctx context.Context) (err error) {
		given, err = hook(ctx, op.r.key)
		return err
	})
	if err != nil {
		return err
	}
	answers, err := op.answers(given)
	if err != nil {
		return err
	}
	if len(answers) > 0 {
		cmd.Redact = op.r.secrets.all()
		if _, err := conn.link.Do(ctx, driver.Command{Action: reins.ListTabs{}, Credentials: answers, Redact: cmd.Redact}); err != nil {
			return err
		}
	}
	conn.met = true
	return nil
}

// answers are the headers that credentials make. What is in them is taken out
// of all texts from now on.
func (op *operation) answers(given []reins.Credential) ([]driver.Credential, error) {
	if len(given) > maxCredentials {
		return nil, reins.Errorf(reins.CodeQuotaExceeded, "the Credentials hook gave %d credentials; a resource has at most %d", len(given), maxCredentials).In(reins.PhaseHook)
	}
	var out []driver.Credential
	for _, c := range given {
		origin, err := credentialOrigin(c)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o driver.Credential) bool { return o.Origin == origin }) {
			return nil, reins.Errorf(reins.CodeInvalidInput, "the Credentials hook gave two for %.200q; give one for an origin", origin).In(reins.PhaseHook)
		}
		token := base64.StdEncoding.EncodeToString([]byte(c.User + ":" + c.Password))
		values := []string{c.Password, token}
		values = slices.DeleteFunc(values, func(v string) bool {
			return utf8.RuneCountInString(v) < redact.Shortest // taking it out would take common text along
		})
		if err := op.r.secrets.learn("password of "+origin, origin, values...); err != nil {
			return nil, err
		}
		out = append(out, driver.Credential{Origin: origin, Authorization: "Basic " + token})
	}
	return out, nil
}

// credentialOrigin checks a credential and returns its origin as browsers write
// it.
func credentialOrigin(c reins.Credential) (string, error) {
	refuse := func(why string) error {
		return reins.Errorf(reins.CodeInvalidInput, "the Credentials hook gave one for %.200q that cannot be used: %s", c.Origin, why).In(reins.PhaseHook)
	}
	u, err := url.Parse(c.Origin)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || strings.Contains(c.Origin, "*"):
		return "", refuse("the origin is to be like https://wiki.example")
	case c.User == "" || strings.Contains(c.User, ":"):
		return "", refuse("a user is missing, or has a colon in it")
	case len(c.User) > maxCredentialed || len(c.Password) > maxCredentialed || !utf8.ValidString(c.User+c.Password) || strings.ContainsFunc(c.User+c.Password, unicode.IsControl):
		return "", refuse("user and password are to be text of at most 1024 bytes")
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":80")
	} else {
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + host, nil
}
