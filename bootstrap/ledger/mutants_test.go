// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var killMutants = flag.Bool("mutants", false, "run the random test on engines with a fault each, all of which it has to find (minutes)")

// mutant is a fault of the engine, as a change of its text.
type mutant struct{ name, file, from, to string }

var mutants = []mutant{
	{"nothing is settled", "settle.go", "errs = append(errs, b.settle(ctx, s))", "for _, r := range s.records {\n\t\tr.Intent = nil\n\t}"},
	{"what was changed along is not settled", "settle.go", "case now.IsZero() && k.Rounds, !written && !shows:", "case true || !written && !shows:"},
	{"what was changed along is not put back", "settle.go", "return b.putBack(ctx, s, k, side, now)", "return nil"},
	{"an object is recorded as it was after it was changed along", "settle.go", "s.of(k, string(side.Object), side.Was)", "s.of(k, string(side.Object), now)"},
	{"what was changed along counts although its cause was not written", "settle.go", "!written && !shows:", "false && !written && !shows:"},
	{"the original is always replaced", "record.go", "return !r.isOurs(k, now) && r.stoodStill(now)", "return true"},
	{"the original is never replaced", "record.go", "return !r.isOurs(k, now) && r.stoodStill(now)", "return false"},
	{"the first claim prevails", "record.go", "if top == nil || top.Loose || !c.Loose || top.To.Type != c.To.Type {", "if _ = c; top == nil {"},
	{"loose claims prevail like others", "record.go", "if top == nil || top.Loose || !c.Loose || top.To.Type != c.To.Type {", "if _ = c; true {"},
	{"who overrides stays in its place", "record.go", "if was.Loose == c.Loose && was.To.Equal(c.To) &&", "if was.Loose == c.Loose && was.To.Equal(c.To) || true ||"},
	{"no intent is recorded", "apply.go", "if err := a.save(a.sheet); err != nil {\n\t\treturn err\n\t}\n\tfor", "for"},
	{"undoing does not record what it changes along", "undo.go", "if err := u.save(u.sheet); err != nil {\n\t\t\treturn err\n\t\t}", ""},
	{"as left is what was wanted, not what was read", "settle.go", "case written:\n\t\tr.leave(now)", "case written:\n\t\tr.leave(i.To)"},
	{"states of agents are not remembered", "record.go", "if s.IsZero() {\n\t\treturn", "if true {\n\t\treturn"},
	{"half a file counts", "record.go", "return time.Since(since) >= quiet", "return true"},
	{"what others have changed is undone", "undo.go", "isAsLeft := w.isOurs(w.kind, now) ||", "isAsLeft := true || w.isOurs(w.kind, now) ||"},
	{"what is neither as before nor as meant is never ours", "settle.go", "return now.Half || k.Rounds && !now.IsZero()", "return now.Half"},
	{"dependents are not undone first", "order.go", "for _, by := range first[w.id] {", "for _, by := range first[w.id][:0] {"},
	{"what stays does not keep what it needs", "undo.go", "return u.held[w.id]", "return nil"},
	{"nobody inherits a directory", "order.go", "if !made.IsZero() && !slices.ContainsFunc(w.rest, claims) {", "if false && !slices.ContainsFunc(w.rest, claims) {"},
	{"a reboot ends nothing", "sheet.go", "return c.Boot != \"\" && c.Boot != boot })\n\t\tr.Causes", "return false })\n\t\tr.Causes"},
	{"contents of originals are collected", "sheet.go", "\t\tadd(r.Original)\n", ""},
	{"contents are not collected", "book.go", "return b.store.collect(s.obsolete())", "return nil"},
	{"a copy of a secret is kept", "book.go", "if s.SHA256 == \"\" || secret {", "if s.SHA256 == \"\" {"},
	{"each claim adopts", "apply.go", "case !known && t.adopts && a.first:", "case (!known || true) && t.adopts:"},
	{"fields of a later version are lost", "json.go", "maps.Copy(all, more)", "maps.Copy(more, all)"},
	{"what others rewrite for an agent is theirs", "record.go", "return isRewritten || k.same", "return isRewritten && false || k.same"},
	{"what a released run changed along is forgotten", "sheet.go", "\t\t\t\ts.bequeathIntent(r)\n", ""},
	{"a value that follows another is not recorded before", "undo.go", "(w.kind.Rounds || w.to.IsZero())", "w.to.IsZero()"},
	{"what was changed along leaves a cause that stays", "undo.go", "(!errors.Is(by.err, ErrChanged) || !w.writes)", "!errors.Is(by.err, ErrChanged)"},
	{"nothing says when an object was first seen", "sheet.go", "Left: now.bare(), LeftAt: time.Now(), id: id,", "Left: now.bare(), LeftAt: time.Time{}, id: id,"},
	{"what nobody asked to adopt is adopted", "apply.go", "case !known && t.adopts && a.first:", "case !known && a.first && !t.Loose && !t.To.IsZero():"},
	{"who overrides is in conflict", "check.go", "if a.ledger.Override {", "if false {"},
	{"who was overridden does not prevail again", "undo.go", "return top.To, w.kind.matches(now, top.want(w.record, w.kind))", "return now, true"},
	{"a conflict is none", "check.go", "if a.ledger.Override {", "if true {"},
}

// Each mutant changes what is there: that is checked each time, and costs nothing.
func TestMutantsStillApply(t *testing.T) {
	for _, m := range mutants {
		m.text(t)
	}
}

func (m mutant) text(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(m.file)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(source), m.from), m.name)
	return strings.Replace(string(source), m.from, m.to, 1)
}

// The random test finds each fault.
func TestTheRandomTestKillsEachMutant(t *testing.T) {
	if !*killMutants {
		t.Log("not asked for: -mutants")
		return
	}
	dir, err := filepath.Abs(".")
	require.NoError(t, err)
	found := regexp.MustCompile(`(?:seed \d+: |KnownSequences/)(.*)`)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			mutated, overlay := filepath.Join(t.TempDir(), m.file), filepath.Join(t.TempDir(), "overlay.json")
			require.NoError(t, os.WriteFile(mutated, []byte(m.text(t)), 0o600))
			text, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(dir, m.file): mutated}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, text, 0o600))
			args := []string{"test", "-vet=off", "-overlay", overlay, "-run", "^TestPLAN6_PLAN14_", ".", "-sequences", strconv.FormatUint(*sequences, 10)}
			out, err := exec.Command("go", args...).CombinedOutput()
			how := found.FindSubmatch(out)
			require.NotContains(t, string(out), "[build failed]")
			require.Error(t, err, "it lives")
			require.NotNil(t, how, string(out))
			t.Logf("| %s | %s |", m.name, how[0])
		})
	}
}
