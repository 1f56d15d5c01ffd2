package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/mcp"
)

// shelf is a lease with stored files.
func shelf(files map[string][]byte) *fakeLease {
	describe := func(id string) reins.Artifact {
		media := "image/png"
		if strings.HasSuffix(id, "txt") {
			media = "text/plain"
		}
		return reins.Artifact{ID: id, Project: "p:1", Resource: "r.2", Kind: "screenshot", MediaType: media, Size: int64(len(files[id])), Name: id}
	}
	return newFakeLease(func(_ context.Context, c reins.Call) (*reins.Result, error) {
		switch a := c.Action.(type) {
		case reins.ListArtifacts:
			res := &reins.Result{}
			for id := range files {
				res.Artifacts = append(res.Artifacts, describe(id))
			}
			return res, nil
		case reins.ReadArtifact:
			data := files[a.Artifact]
			if a.Offset >= 2<<20 && a.Artifact == "cut" {
				return nil, reins.Errorf(reins.CodeLeaseEnded, "the lease ended")
			}
			end := min(a.Offset+a.Length, int64(len(data)))
			return &reins.Result{Data: data[a.Offset:end]}, nil
		}
		return &reins.Result{}, nil
	})
}

func read(c client, uri string) (*sdk.ReadResourceResult, error) {
	return c.ReadResource(context.Background(), &sdk.ReadResourceParams{URI: uri})
}

// ART-7, LSE-8: artifacts are resources of their lease, read in chunks.
func TestArtifactsAreResources(t *testing.T) {
	big := bytes.Repeat([]byte("0123456789"), 250_000)
	lease := shelf(map[string][]byte{"big": big, "note.txt": []byte("héllo"), "cut": big, "huge": make([]byte, 17<<20)})
	c := connect(t, mcp.Options{Lease: give(lease)}, nil)
	got, err := read(c, "reins://p:1/r.2/artifacts/big")
	if err != nil {
		t.Fatal(err)
	}
	if r := got.Contents[0]; !bytes.Equal(r.Blob, big) || r.MIMEType != "image/png" {
		t.Errorf("%d bytes of %s", len(r.Blob), r.MIMEType)
	}
	for _, a := range lease.actions() {
		if r, ok := a.(reins.ReadArtifact); ok && (r.Length > 1<<20 || r.Validate() != nil) {
			t.Errorf("a chunk of %d bytes", r.Length)
		}
	}
	if got, err := read(c, "reins://p:1/r.2/artifacts/note.txt"); err != nil || got.Contents[0].Text != "héllo" {
		t.Errorf("text: %v %v", got, err)
	}
	var missing *jsonrpc.Error
	if !errors.As(sdk.ResourceNotFoundError(""), &missing) {
		t.Fatal("the SDK has no form for it")
	}
	notFound := missing.Code
	for uri, code := range map[string]int64{
		"reins://p:1/r.2/artifacts/other": notFound,
		"reins://q/r.2/artifacts/big":     notFound, // OVW-6: an address selects no identity
		"file:///etc/passwd":              notFound,
		"reins://p:1/r.2/artifacts/huge":  jsonrpc.CodeInvalidParams,
		"reins://p:1/r.2/artifacts/cut":   jsonrpc.CodeInternalError,
	} {
		_, err := read(c, uri)
		var e *jsonrpc.Error
		if !errors.As(err, &e) || e.Code != code {
			t.Errorf("%s: %v, want %d", uri, err, code)
		}
		if strings.HasSuffix(uri, "cut") && !strings.Contains(string(e.Data), `"lease_ended"`) {
			t.Errorf("%s: data %s", uri, e.Data)
		}
	}
}

// RDY-4: the readiness is a resource; the list grows with the artifacts.
func TestResourcesAreListed(t *testing.T) {
	ready := func() reins.Readiness {
		return reins.Readiness{Overall: "ready", Facts: map[string]string{"sandbox": "on"}}
	}
	c := connect(t, mcp.Options{Lease: give(shelf(map[string][]byte{"a": nil})), Readiness: ready}, nil)
	uris := func() (out []string) {
		res, err := c.ListResources(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range res.Resources {
			out = append(out, r.URI)
		}
		return out
	}
	if got := uris(); !same(got, []string{"reins://readiness"}) {
		t.Errorf("before the first call: %v", got)
	}
	call(t, c, "browser_press", map[string]any{"key": "Enter"})
	if got := uris(); !same(got, []string{"reins://readiness", "reins://p:1/r.2/artifacts/a"}) {
		t.Errorf("after it: %v", got)
	}
	got, err := read(c, "reins://readiness")
	if err != nil {
		t.Fatal(err)
	}
	var r reins.Readiness
	if err := json.Unmarshal([]byte(got.Contents[0].Text), &r); err != nil || r.Overall != "ready" || r.Facts["sandbox"] != "on" {
		t.Errorf("%s %v", got.Contents[0].Text, err)
	}
}
