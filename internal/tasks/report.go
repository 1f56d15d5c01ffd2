package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// totals sums up results.
type totals struct {
	Tried      int           `json:"tried"`
	Done       int           `json:"done"`
	Calls      int           `json:"calls"`
	Bytes      int           `json:"bytes"`
	Wall       time.Duration `json:"wall_ns"`
	CallMedian time.Duration `json:"median_of_mean_call_ns"`
	BytesMed   int           `json:"median_bytes_per_task"`
}

func sum(all []result) totals {
	var t totals
	var means []time.Duration
	var sizes []int
	for _, r := range all {
		t.Tried++
		if r.Done {
			t.Done++
		}
		t.Calls += r.Calls
		t.Bytes += r.Bytes
		t.Wall += r.Wall
		if r.Calls > 0 {
			means = append(means, r.Time/time.Duration(r.Calls))
			sizes = append(sizes, r.Bytes)
		}
	}
	if len(means) > 0 {
		slices.Sort(means)
		slices.Sort(sizes)
		t.CallMedian, t.BytesMed = means[len(means)/2], sizes[len(sizes)/2]
	}
	return t
}

// printJSON writes everything for machines.
func printJSON(w io.Writer, all []result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		Totals  totals   `json:"totals"`
		Results []result `json:"results"`
	}{sum(all), all})
}

// printTable writes everything for people.
func printTable(w io.Writer, all []result) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "TASK\tSEED\tDONE\tCALLS\tBYTES\tTIME\tSLOWEST CALL\t")
	for _, r := range all {
		done := "yes"
		if !r.Done {
			done = "NO"
		}
		fmt.Fprintf(tw, "%s\t%d\t%s\t%d\t%d\t%s\t%s %s\t%s\n", r.Task, r.Seed, done, r.Calls, r.Bytes,
			r.Wall.Round(time.Millisecond), r.Slowest.Round(100*time.Microsecond), r.Slow, r.Detail)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	t := sum(all)
	_, err := fmt.Fprintf(w, "\n%d of %d done. %d calls, %d bytes read, %s.\nPer task at the median: %d bytes read, %s a call.\n",
		t.Done, t.Tried, t.Calls, t.Bytes, t.Wall.Round(time.Millisecond), t.BytesMed, t.CallMedian.Round(100*time.Microsecond))
	return err
}
