// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package bench compares what the library costs with what others cost for the same:
// measured in turn, in one run on one machine, since only that says anything on a
// machine that does other work too. Its benchmarks are what make scale and make growth
// run; those of realkube/bootstorm, which make storm runs, use it too.
package bench

import (
	"slices"
	"testing"
)

// Ours is who is compared with the others.
const Ours = "ours"

// Measured has the measurements, by unit and by whom they are of.
type Measured map[string]map[string][]float64

// Add adds one measurement.
func (m Measured) Add(who, unit string, value float64) {
	if m[unit] == nil {
		m[unit] = map[string][]float64{}
	}
	m[unit][who] = append(m[unit][who], value)
}

// Report reports the medians: ours by the unit, of the others by their name and the
// unit, and how many times ours theirs is, by NAME/ours and the unit.
func (m Measured) Report(b *testing.B) {
	b.ReportMetric(0, "ns/op") // of all that is measured together, which says nothing
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
