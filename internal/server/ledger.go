package server

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reins-browser/reins"
)

const (
	ledgerBatch  = 256                    // records of one transaction
	ledgerLinger = 100 * time.Millisecond // how long records that nobody waits for may gather
	ledgerLimit  = 20 * time.Second       // of one transaction
	inputEvery   = time.Second            // how often an attempt at raw input is kept, for each lease
	inputLeases  = 4096
)

// ledger writes the audit trail: attempts before their effects begin, and the
// outcomes that the host tells. Whoever comes while one transaction is written
// shares the next.
type ledger struct {
	write func(context.Context, ...reins.Record) error
	log   *slog.Logger
	queue chan entry
	stop  chan struct{} // closed: what is queued is written, nothing more is taken
	done  chan struct{}

	failed atomic.Uint64 // records that could not be written
	last   atomic.Pointer[reins.Error]

	mu    sync.Mutex
	input map[string]time.Time // the last attempt at raw input that was kept, by lease
}

// entry is one record, and who waits until it is on the disk, if anybody.
type entry struct {
	record reins.Record
	told   chan<- error
}

func newLedger(write func(context.Context, ...reins.Record) error, log *slog.Logger) *ledger {
	l := &ledger{write: write, log: log, queue: make(chan entry, ledgerBatch), stop: make(chan struct{}), done: make(chan struct{}), input: map[string]time.Time{}}
	go l.run()
	return l
}

// attempt keeps that an operation is about to begin, and returns when that is on the
// disk (GATE-1). Raw input comes sixty times a second; one attempt a second stands for
// it, as one record does for its outcome (GATE-3).
func (l *ledger) attempt(ctx context.Context, op reins.Operation) error {
	if op.Class == reins.ClassRawInput && !l.inputDue(op.Authority.LeaseID, op.Started) {
		return nil
	}
	b := op.Authority.Binding
	told := make(chan error, 1)
	e := entry{reins.Record{
		Time: op.Started.UTC(), Operation: op.ID, Project: b.Project, Resource: b.Resource, Actor: b.Actor, Role: b.Role,
		CapabilityID: op.Authority.CapabilityID, LeaseID: op.Authority.LeaseID, Run: b.Run, Revision: b.Revision,
		Incarnation: op.Authority.Incarnation, Tab: op.Tab, Action: string(op.Verb), Class: op.Class,
		Outcome: reins.OutcomeAttempted,
	}, told}
	select {
	case l.queue <- e:
	case <-l.stop:
		return errDraining()
	case <-ctx.Done():
		return reins.ContextError(ctx)
	}
	select {
	case err := <-told:
		return err
	case <-l.done: // it came too late
		return errDraining()
	case <-ctx.Done():
		return reins.ContextError(ctx)
	}
}

func (l *ledger) inputDue(lease string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.input[lease]) < inputEvery {
		return false
	}
	if len(l.input) >= inputLeases {
		clear(l.input) // they are kept once more
	}
	l.input[lease] = now
	return true
}

// outcome takes a record of the host. It waits while the disk is behind: then the
// host's own buffer fills, and counts what it drops (HK-3).
func (l *ledger) outcome(r reins.Record) {
	select {
	case l.queue <- entry{record: r}:
	case <-l.stop:
		l.failed.Add(1)
	}
}

// close writes what is queued and takes nothing more.
func (l *ledger) close() {
	close(l.stop)
	<-l.done
}

// next is the next entry; false when the ledger is closed and nothing is queued.
func (l *ledger) next() (entry, bool) {
	select {
	case e := <-l.queue:
		return e, true
	case <-l.stop:
	}
	select {
	case e := <-l.queue:
		return e, true
	default:
		return entry{}, false
	}
}

func (l *ledger) run() {
	defer close(l.done)
	for {
		first, ok := l.next()
		if !ok {
			return
		}
		batch, waited := l.gather(first)
		records := make([]reins.Record, len(batch))
		for i, e := range batch {
			records[i] = e.record
		}
		ctx, cancel := context.WithTimeout(context.Background(), ledgerLimit)
		err := l.write(ctx, records...)
		cancel()
		l.last.Store(reins.AsError(err))
		if err != nil {
			l.failed.Add(uint64(len(batch)))
			l.log.Error("the audit trail was not written", "records", len(batch), "waited for", waited, "err", err)
		}
		for _, e := range batch {
			if e.told != nil {
				e.told <- err
			}
		}
	}
}

// gather takes what there is. As long as nobody waits it takes its time, so that
// outcomes are written with the attempts of those who come next.
func (l *ledger) gather(first entry) (batch []entry, waited int) {
	timer := time.NewTimer(ledgerLinger)
	defer timer.Stop()
	add := func(e entry) {
		batch = append(batch, e)
		if e.told != nil {
			waited++
		}
	}
	for add(first); len(batch) < ledgerBatch; {
		var linger <-chan time.Time
		if waited == 0 {
			linger = timer.C
		} else if len(l.queue) == 0 {
			return batch, waited
		}
		select {
		case e := <-l.queue:
			add(e)
		case <-linger:
			return batch, waited
		case <-l.stop:
			if len(l.queue) == 0 {
				return batch, waited
			}
		}
	}
	return batch, waited
}
