package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

// auditPage is how much of the trail is asked for at a time.
const auditPage = 10_000

func newAudit(io stdio) *cobra.Command {
	r := &remote{io: io}
	var after int64
	var last int
	cmd := r.asks(&cobra.Command{
		Use:   "audit [PROJECT[/RESOURCE]]",
		Short: "Print what was done: by whom, on what, and what came of it",
		Long: `Prints the newest records of a server's audit trail, of one project or browser when it is
named. No record holds what was typed. All of the trail needs an administrator's key.

--after prints what came after a record, whose number is in the first column.`,
		Example: `  reins audit
  reins audit shop/till --last 500
  reins audit shop --after 1200 --json`,
	}, 0, 1, func(ctx context.Context, c *api.Client, arguments []string) error {
		if last < 0 || last > auditPage {
			return reins.Errorf(reins.CodeInvalidInput, "--last is %d; use 0 to %d", last, auditPage)
		}
		q := api.AuditQuery{After: after, Limit: auditPage}
		if len(arguments) > 0 {
			q.Project, q.Resource, _ = strings.Cut(arguments[0], "/")
		}
		if r.json {
			return newest(ctx, c, q, last, func(e []api.AuditEntry) error { return printJSON(r.io.out, api.AuditList{Entries: e}) })
		}
		return newest(ctx, c, q, last, r.printAudit)
	})
	r.add(cmd.Flags())
	cmd.Flags().Int64Var(&after, "after", 0, "only records after this `number`")
	cmd.Flags().IntVar(&last, "last", 50, "how many of the newest, up to 10000; 0 is as many")
	r.completes(cmd, 0, r.resources)
	return cmd
}

// newest reads the trail to its end and hands the last of it to print.
func newest(ctx context.Context, c *api.Client, q api.AuditQuery, last int, print func([]api.AuditEntry) error) error {
	if last == 0 {
		last = auditPage
	}
	kept := []api.AuditEntry{}
	for {
		page, err := c.Audit(ctx, q)
		if err != nil {
			return err
		}
		kept = append(kept, page...)
		kept = kept[max(0, len(kept)-last):]
		if len(page) < q.Limit {
			return print(kept)
		}
		q.After = page[len(page)-1].ID
	}
}

func (r *remote) printAudit(all []api.AuditEntry) error {
	rows := [][]string{{"RECORD", "TIME", "RESOURCE", "ACTOR", "ACTION", "OUTCOME", "TOOK", "WHAT"}}
	for _, e := range all {
		rec := e.Record
		outcome := string(rec.Outcome)
		if rec.Code != "" {
			outcome += " " + string(rec.Code)
		}
		rows = append(rows, []string{
			strconv.FormatInt(e.ID, 10), clock(rec.Time), dash(strings.Trim(rec.Project+"/"+rec.Resource, "/")), dash(rec.Actor),
			word(rec.Action), outcome, took(rec.Duration), what(rec),
		})
	}
	return table(r.io.out, rows)
}

func took(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
}

// what a record is about: what the page calls it, and what is said of it.
func what(rec reins.Record) string {
	var parts []string
	if t := rec.Target; t != nil {
		parts = append(parts, strings.TrimSpace(word(t.Role)+" "+strconv.Quote(t.Name)))
	}
	if rec.Detail != "" {
		parts = append(parts, word(rec.Detail))
	}
	return strings.Join(parts, ": ")
}
