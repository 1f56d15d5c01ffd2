package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/reins-browser/reins"
)

// Meters measure a server (API-5). No label holds what a client, an agent or a page
// made up.
type Meters struct {
	registry   *prometheus.Registry
	requests   *prometheus.HistogramVec
	open       prometheus.Gauge
	operations *prometheus.HistogramVec
	tracer     trace.Tracer // nil: none
}

// NewMeters makes the meters of a process; with a tracer they also make spans of
// requests and operations.
func NewMeters(version string, tracer trace.Tracer) *Meters {
	m := &Meters{
		registry: prometheus.NewRegistry(), tracer: tracer,
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "reins_http_request_seconds", Help: "Requests by route and status, until their answer ended.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route", "status"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "reins_http_open_requests", Help: "Requests and streams under way."}),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "reins_operation_seconds", Help: "Operations by action, role and outcome, from admission until they settled.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"action", "role", "outcome", "code"}),
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "reins_build_info", Help: "Which version runs; always 1."}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	m.registry.MustRegister(m.requests, m.open, m.operations, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// gauge adds a value that is asked for.
func (m *Meters) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// counter adds a count that is asked for.
func (m *Meters) counter(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
}

// Handler serves what was measured, in the text form of Prometheus.
func (m *Meters) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// record counts one operation, and makes a span of it.
func (m *Meters) record(r reins.Record) {
	m.operations.WithLabelValues(r.Action, string(r.Role), string(r.Outcome), string(r.Code)).Observe(r.Duration.Seconds())
	if m.tracer == nil || r.Operation == "" {
		return
	}
	_, span := m.tracer.Start(context.Background(), r.Action, trace.WithTimestamp(r.Time.Add(-r.Duration)), trace.WithAttributes(
		attribute.String("reins.operation", r.Operation), attribute.String("reins.project", r.Project),
		attribute.String("reins.resource", r.Resource), attribute.String("reins.role", string(r.Role)),
		attribute.String("reins.run", r.Run), attribute.String("reins.outcome", string(r.Outcome))))
	if r.Outcome == reins.OutcomeFailed || r.Outcome == reins.OutcomeUnknown {
		span.SetStatus(codes.Error, string(r.Code))
	}
	span.End(trace.WithTimestamp(r.Time))
}

// Observe implements [DoorOptions.Observe].
func (m *Meters) Observe(route func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, name := time.Now(), route(r)
		m.open.Inc()
		defer m.open.Dec()
		seen := &observed{ResponseWriter: w}
		if m.tracer != nil {
			ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
			ctx, span := m.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
				attribute.String("http.request.method", methodOf(r)), attribute.String("http.route", name)))
			defer func() {
				span.SetAttributes(attribute.Int("http.response.status_code", seen.code()))
				if seen.code() >= 500 {
					span.SetStatus(codes.Error, http.StatusText(seen.code()))
				}
				span.End()
			}()
			r = r.WithContext(ctx)
		}
		defer func() {
			m.requests.WithLabelValues(name, strconv.Itoa(seen.code())).Observe(time.Since(began).Seconds())
		}()
		next.ServeHTTP(seen, r)
	})
}

// methodOf is a request's method, unless its client made it up.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch:
		return r.Method
	}
	return "_OTHER"
}

// observed remembers the status of an answer. What else a writer can do is found by
// Unwrap.
type observed struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (o *observed) WriteHeader(status int) {
	if o.status == 0 || o.status < 200 {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (o *observed) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func (o *observed) code() int {
	if o.status == 0 {
		return http.StatusOK
	}
	return o.status
}

// metrics serves the meters to this machine, and to whoever has an administrator's key.
func (d *Door) metrics(w http.ResponseWriter, r *http.Request) {
	from, ok := addressOf(r.RemoteAddr)
	_, token := bearer(r)
	if k := d.o.Keys.find(token); (!ok || !from.IsLoopback()) && (k == nil || k.Binding != nil || k.Project != "") {
		w.Header().Set("WWW-Authenticate", "Bearer")
		d.refuse(w, r, reins.Errorf(reins.CodeUnauthorized, "from another machine this needs an administrator's API key, or a listener of its own (--metrics-listen)").In(reins.PhaseAdmission))
		return
	}
	d.o.Metrics.ServeHTTP(w, r)
}
