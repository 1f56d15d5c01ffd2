package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/tooltable"
)

const (
	readinessURI = "reins://readiness"
	// maxRead bounds an artifact read in one message: beyond it clients and
	// models gain nothing.
	maxRead  = 16 << 20
	chunkLen = 1 << 20
)

// addResources offers the readiness and the artifacts of the lease (RDY-4, ART-7).
func (s *session) addResources(server *sdk.Server) {
	if s.readiness != nil {
		server.AddResource(readinessResource(), s.readReadiness)
	}
	server.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "artifact", Title: "Screenshot or download",
		Description: "A file made by this session's calls; their results name it.",
		// The plus lets names hold every character that they may.
		URITemplate: "reins://{+project}/{+resource}/artifacts/{+artifact}",
	}, s.readArtifact)
	server.AddReceivingMiddleware(s.listResources)
}

func readinessResource() *sdk.Resource {
	return &sdk.Resource{
		URI: readinessURI, Name: "readiness", Title: "State of the browser", MIMEType: "application/json",
		Description: "What the browser can do now, and what to do about what it cannot.",
	}
}

func (s *session) readReadiness(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	body, err := json.Marshal(s.readiness())
	if err != nil {
		return nil, protocolFailure(req.Params.URI, err)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json", Text: string(body)}}}, nil
}

// listResources answers a listing with what the lease may read now. A client
// that has made no call yet has no lease and no artifacts.
func (s *session) listResources(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		res, err := next(ctx, method, req)
		list, ok := res.(*sdk.ListResourcesResult)
		if err != nil || !ok {
			return res, err
		}
		lease := s.hold.Live()
		if lease == nil {
			return list, nil
		}
		got, err := lease.Do(ctx, reins.Call{Action: reins.ListArtifacts{}})
		if err != nil {
			return nil, protocolFailure("", err)
		}
		for _, a := range got.Artifacts {
			list.Resources = append(list.Resources, &sdk.Resource{
				URI: a.URI(), Name: tooltable.Bounded(a.Name), MIMEType: a.MediaType, Size: a.Size, Description: a.Kind,
			})
		}
		return list, nil
	}
}

func (s *session) readArtifact(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	ctx, stop := s.until(ctx)
	defer stop()
	uri := req.Params.URI
	lease, err := s.hold.Current(ctx)
	if err != nil {
		return nil, protocolFailure(uri, err)
	}
	a, err := find(ctx, lease, uri)
	if err != nil {
		return nil, protocolFailure(uri, err)
	}
	data, err := readAll(ctx, lease, a)
	if err != nil {
		return nil, protocolFailure(uri, err)
	}
	content := &sdk.ResourceContents{URI: uri, MIMEType: a.MediaType}
	if strings.HasPrefix(a.MediaType, "text/") && utf8.Valid(data) {
		content.Text = string(data)
	} else {
		content.Blob = data
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{content}}, nil
}

// find returns the artifact with that address among those that the lease may
// read. The address says nothing about who may.
func find(ctx context.Context, lease reins.Lease, uri string) (reins.Artifact, error) {
	got, err := lease.Do(ctx, reins.Call{Action: reins.ListArtifacts{}})
	if err != nil {
		return reins.Artifact{}, err
	}
	for _, a := range got.Artifacts {
		if a.URI() == uri {
			if a.Size > maxRead {
				return a, reins.Errorf(reins.CodeInvalidInput, "artifact %s has %d bytes; at most %d are read over MCP", a.ID, a.Size, maxRead)
			}
			return a, nil
		}
	}
	return reins.Artifact{}, reins.Errorf(reins.CodeNotFound, "no such artifact")
}

// readAll reads in chunks, authority being checked for each (LSE-8). What was
// read is cleared when it could not be read whole.
func readAll(ctx context.Context, lease reins.Lease, a reins.Artifact) ([]byte, error) {
	data := make([]byte, 0, a.Size)
	for int64(len(data)) < a.Size {
		got, err := lease.Do(ctx, reins.Call{Action: reins.ReadArtifact{
			Artifact: a.ID, Offset: int64(len(data)), Length: min(chunkLen, a.Size-int64(len(data))),
		}})
		if err == nil && len(got.Data) == 0 {
			err = reins.Errorf(reins.CodeCorrupt, "artifact %s ends after %d of %d bytes", a.ID, len(data), a.Size)
		}
		if err != nil {
			clear(data)
			return nil, err
		}
		data = append(data, got.Data...)
	}
	return data, nil
}
