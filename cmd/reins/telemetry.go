package main

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/reins-browser/reins"
)

// newTracer makes a tracer that sends spans by OTLP over HTTP (API-5): nil when nothing
// says where to. The other settings of OpenTelemetry's environment count as they are.
// Flush sends what is left.
func newTracer(ctx context.Context, endpoint string, log *slog.Logger) (_ trace.Tracer, flush func(), _ error) {
	flush = func() {}
	if cmp.Or(endpoint, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")) == "" {
		return nil, flush, nil
	}
	var o []otlptracehttp.Option
	if endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, flush, reins.Errorf(reins.CodeInvalidInput, "--otlp-endpoint %.100q is no address such as http://127.0.0.1:4318", endpoint)
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1/traces"
		}
		o = append(o, otlptracehttp.WithEndpointURL(u.String()))
	}
	exporter, err := otlptracehttp.New(ctx, o...)
	if err != nil {
		return nil, flush, reins.Errorf(reins.CodeInvalidInput, "traces cannot be sent: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces were not sent", "err", err) }))
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", cmp.Or(os.Getenv("OTEL_SERVICE_NAME"), "reins")), attribute.String("service.version", version))))
	return p.Tracer("github.com/reins-browser/reins"), func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			log.Warn("the last traces were not sent", "err", err)
		}
	}, nil
}
