// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bench compares the library's cost with that of others for the same work. They are
// measured in turn, in one run on one machine, which is the only meaningful comparison on a
// machine that also does other work. make scale and make growth run its benchmarks.
package bench

import (
	"slices"
	"testing"
)

// Ours names the library in the comparison.
const Ours = "ours"

// Measured holds the measurements, by unit and by name.
type Measured map[string]map[string][]float64

// Add adds one measurement.
func (m Measured) Add(who, unit string, value float64) {
	if m[unit] == nil {
		m[unit] = map[string][]float64{}
	}
	m[unit][who] = append(m[unit][who], value)
}

// Report reports the medians: ours by unit, the others' by name and unit, and their ratio
// to ours by NAME/ours and unit.
func (m Measured) Report(b *testing.B) {
	b.ReportMetric(0, "ns/op") // it would cover everything together, which means nothing
	for unit, by := range m {
		ours := median(by[Ours])
		for who, values := range by {
			if who == Ours {
				b.ReportMetric(ours, unit)
				continue
			}
			b.ReportMetric(median(values), who+"-"+unit)
			if ours > 0 {
				b.ReportMetric(median(values)/ours, who+"/ours-"+unit)
			}
		}
	}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
