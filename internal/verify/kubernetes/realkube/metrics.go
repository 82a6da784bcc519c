// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Metrics are the API server's counters at one time, by name and labels as printed.
type Metrics map[string]float64

// Metrics reads the API server's counters.
func (s *Server) Metrics(ctx context.Context) (Metrics, error) {
	text, err := s.admin.Get(ctx, "/metrics")
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	m := Metrics{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		i := strings.LastIndexByte(lines.Text(), ' ')
		if i < 0 || lines.Text()[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(lines.Text()[i+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", lines.Text(), err)
		}
		m[lines.Text()[:i]] = value
	}
	return m, lines.Err()
}

// Sum adds up the series of the metric whose labels contain all of these texts, such as
// `verb="GET"`.
func (m Metrics) Sum(name string, labels ...string) float64 {
	total := 0.0
	for series, value := range m {
		metric, rest, _ := strings.Cut(series, "{")
		if metric == name && containsAll(rest, labels) {
			total += value
		}
	}
	return total
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// Cost is the cost of requests to the API server between two times.
type Cost struct {
	EtcdReads float64 // get and list requests to etcd
	Bytes     float64 // in bodies of answers to GET and LIST
}

// Since is the cost since before.
func (m Metrics) Since(before Metrics) Cost {
	diff := func(name string, labels ...string) float64 {
		return m.Sum(name, labels...) - before.Sum(name, labels...)
	}
	return Cost{
		EtcdReads: diff("etcd_requests_total", `operation="get"`) + diff("etcd_requests_total", `operation="list"`),
		Bytes:     diff("apiserver_response_sizes_sum", `verb="GET"`) + diff("apiserver_response_sizes_sum", `verb="LIST"`),
	}
}
