// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// A script is a sequence of operations, one a line, by which a failure is repeated:
//
//	override 0 2                    these agents override others
//	apply 0 s "v:a"=1 "f:/h"=2,secret kill=7
//	undo 0 [s] [kill=N]             the run is killed at its Nth step
//	other "v:a"=7                   another program writes, and is done
//	torn "f:/h"=7                   it has not finished
//	older "f:/h"=N                  it writes the Nth state that agents have left
//	reboot
//	release 0
//	forget 0 "v:a"
//	later                           a later version writes the file
type op struct {
	verb   string
	agent  int
	step   string
	wants  []want
	object string
	to     string
	kill   int
	agents []int
}

type want struct {
	object, to string
	flags      []string
}

func (w want) has(flag string) bool { return slices.Contains(w.flags, flag) }

func (o *op) want(object string) *want {
	for i := range o.wants {
		if o.wants[i].object == object {
			return &o.wants[i]
		}
	}
	return nil
}

func (o op) String() string {
	words := []string{o.verb}
	switch o.verb {
	case "override":
		for _, a := range o.agents {
			words = append(words, strconv.Itoa(a))
		}
	case "apply":
		words = append(words, strconv.Itoa(o.agent), o.step)
		for _, w := range o.wants {
			words = append(words, strings.Join(append([]string{fmt.Sprintf("%q=%s", w.object, w.to)}, w.flags...), ","))
		}
	case "undo", "release":
		words = append(words, strconv.Itoa(o.agent))
		if o.step != "" {
			words = append(words, o.step)
		}
	case "forget":
		words = append(words, strconv.Itoa(o.agent), strconv.Quote(o.object))
	case "other", "torn", "older":
		words = append(words, fmt.Sprintf("%q=%s", o.object, o.to))
	}
	if o.kill > 0 {
		words = append(words, fmt.Sprintf("kill=%d", o.kill))
	}
	return strings.Join(words, " ")
}

// parseScript reads what String writes.
func parseScript(t *testing.T, script string) (ops []op) {
	t.Helper()
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		o := op{verb: words[0]}
		for _, word := range words[1:] {
			require.NoError(t, o.parse(word), line)
		}
		ops = append(ops, o)
	}
	return ops
}

func (o *op) parse(word string) (err error) {
	if kill, ok := strings.CutPrefix(word, "kill="); ok {
		o.kill, err = strconv.Atoi(kill)
		return err
	}
	if strings.HasPrefix(word, `"`) {
		quoted, err := strconv.QuotedPrefix(word)
		if err != nil {
			return err
		}
		object, _ := strconv.Unquote(quoted)
		fields := strings.Split(strings.TrimPrefix(word[len(quoted):], "="), ",")
		if o.object, o.to = object, fields[0]; o.verb == "apply" {
			o.wants = append(o.wants, want{object, fields[0], fields[1:]})
		}
		return nil
	}
	if n, err := strconv.Atoi(word); err == nil {
		o.agent = n
		o.agents = append(o.agents, n)
		return nil
	}
	o.step = word
	return nil
}

var errKilled = errors.New("killed")

// play is one run of a script.
type play struct {
	node     *node
	oracle   *oracle
	memory   *ledger.Memory
	override []int
	boot     int
	left     map[string][]string // states that agents have left, by object
	lives    int
	status   ledger.Status // after the last operation
	trace    []string
	later    map[string]bool // parts of the file that a later version has written
}

func newPlay(root string) *play {
	p := &play{node: newNode(root), memory: &ledger.Memory{}, left: map[string][]string{}}
	p.oracle = newOracle(p.node)
	p.node.die = p.die
	p.memory.Step = p.die
	return p
}

func (p *play) die() {
	if p.lives--; p.lives == 0 {
		p.node.killed = true
		panic(errKilled)
	}
}

// run returns the first violation of a script, and undoes all agents at its end.
func run(ops []op) (p *play, err error) { return runIn("", ops) }

// runIn is run with files and directories below root.
func runIn(root string, ops []op) (p *play, err error) {
	p = newPlay(root)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	for _, o := range ops {
		if err := p.do(o); err != nil {
			return p, fmt.Errorf("%s: %w", o, err)
		}
	}
	return p, p.end()
}

func (p *play) do(o op) error {
	p.oracle.current = &o
	if p.oracle.see(p.status); p.oracle.begun && (o.verb == "apply" || o.verb == "undo") {
		p.oracle.settled = time.Now()
	}
	killed, err := p.perform(o)
	p.trace = append(p.trace, fmt.Sprintf("%s\n    %q%s", o, p.node.states(), problem(err)))
	if killed {
		p.oracle.blur(o.agent)
	}
	if o.verb == "reboot" && err != nil {
		return err
	}
	return p.verify(o, killed, err)
}

func problem(err error) string {
	if err == nil {
		return ""
	}
	return " " + strings.ReplaceAll(err.Error(), "\n", "; ")
}

// book opens the ledger as a new process.
func (p *play) book(agent int) *ledger.Book {
	l := &ledger.Ledger{Agent: fmt.Sprintf("agent%d", agent), Adopt: true, Override: slices.Contains(p.override, agent)}
	for _, k := range p.node.kinds() {
		l.Kinds = append(l.Kinds, k)
	}
	return l.OpenIn(p.memory, fmt.Sprint("boot", p.boot))
}

func (p *play) look() (ledger.Status, error) { return p.book(0).Status(context.Background()) }

// perform does what an operation says.
func (p *play) perform(o op) (killed bool, err error) {
	switch o.verb {
	case "override":
		p.override = o.agents
	case "other", "torn", "older":
		p.write(o)
	case "reboot":
		p.boot++
		p.node.reboot()
		if _, err := p.book(0).Release(context.Background(), "nobody"); err != nil { // what has ended goes
			return false, err
		}
		if p.later, err = laterParts(p.memory.Content); err != nil {
			return false, err
		}
		status, err := p.look()
		if err != nil {
			return false, err
		}
		recorded := p.recordedIn(status)
		if recorded["v:a"] || recorded["v:b[0]"] || recorded["v:c\xff\\"] || recorded["m:/m"] {
			return false, errors.New("what ended with the boot is still recorded")
		}
		p.oracle.reboot(recorded)
	case "later":
		if _, err := p.book(0).Release(context.Background(), "nobody"); err != nil { // what a reboot has ended goes
			return false, err
		}
		p.memory.Content, err = writtenLater(p.memory.Content)
		if err == nil {
			p.later, err = laterParts(p.memory.Content)
		}
	default:
		killed, err = p.mortal(o.kill, func() error { return p.act(o) })
	}
	return killed, err
}

// write is by another program.
func (p *play) write(o op) {
	to := o.to
	if o.verb == "older" {
		all := p.left[o.object]
		if len(all) == 0 || o.object[0] == 'm' { // a mount that has gone never comes back: the next one is another
			return
		}
		n, _ := strconv.Atoi(o.to)
		to = all[n%len(all)]
	}
	before := p.node.states()
	p.node.set(o.object, to)
	for _, object := range objects {
		if p.node.state(object) != before[object] || object == o.object {
			p.oracle.others(object)
		}
		if below := o.object[0] == 'd' && strings.HasPrefix(object[2:], o.object[2:]+"/"); below && to == "" {
			p.oracle.objects[object].orphaned()
		}
	}
	if o.verb != "torn" || o.object[0] == 'm' { // there is no half a mount
		time.Sleep(2 * time.Second) // of a clock that does not wait
	}
}

// mortal kills f at its nth step; never if n is 0.
func (p *play) mortal(n int, f func() error) (killed bool, err error) {
	defer func() {
		if r := recover(); r == errKilled {
			killed = true
			p.node.killed = false
			p.node.abandon()
		} else if r != nil {
			panic(r)
		}
		p.lives = 0
	}()
	p.lives = n
	return false, f()
}

// act is an operation of an agent.
func (p *play) act(o op) (err error) {
	book := p.book(o.agent)
	p.oracle.overrides = slices.Contains(p.override, o.agent)
	switch o.verb {
	case "apply":
		var applied ledger.Outcome
		done := false
		defer func() { p.oracle.wanted(applied, done) }()
		applied, err = book.Apply(context.Background(), o.step, ledger.Wants{List: p.wants(o)})
		if done = err == nil; done {
			err = p.changesNothingAgain(o)
		} else if errors.Is(err, ledger.ErrConflict) && !p.mayConflict(o) {
			p.oracle.broken = fmt.Errorf("no other agent prevails: %w", err)
		}
		for _, object := range objects {
			if o.want(object) != nil && done {
				p.left[object] = append(p.left[object], p.node.state(object))
			}
		}
	case "undo":
		p.oracle.looksAtAll()
		var steps []string
		if o.step != "" {
			steps = []string{o.step}
		}
		_, err = book.Undo(context.Background(), steps)
		if err != nil {
			p.oracle.blur(o.agent)
		}
		p.oracle.dropClaims(func(c claimed) bool { return c.agent == o.agent && (o.step == "" || c.step == o.step) })
	case "release":
		p.node.forgot = true
		_, err = book.Release(context.Background(), fmt.Sprintf("agent%d", o.agent))
		p.oracle.blur(o.agent)
	case "forget":
		p.node.forgot = true
		k := p.node.kinds()[o.object[:1]]
		_ = book.Forget(context.Background(), ledger.Want{Kind: k, Object: p.node.name(o.object)}.ID()) // it may have none
		p.oracle.vague[o.object] = true
	}
	return err
}

// mayConflict reports whether another agent claims an object that the operation writes, or
// changes along, and is not overridden.
func (p *play) mayConflict(o op) bool {
	return !p.oracle.overrides && slices.ContainsFunc(p.status.Records, func(r ledger.Record) bool {
		object := p.node.objectOf(r)
		isOthers := slices.ContainsFunc(r.Claims, func(c ledger.Claim) bool { return c.Agent != fmt.Sprintf("agent%d", o.agent) })
		return isOthers && slices.ContainsFunc(o.wants, func(w want) bool { return w.object == object || alongOf[w.object] == object })
	})
}

// changesNothingAgain returns an error if the same apply would change or record anything. After
// a claim that keeps no copies, or is on what others rewrite, it may record what that did not.
func (p *play) changesNothingAgain(o op) error {
	look, err := p.book(o.agent).Check(context.Background(), o.step, ledger.Wants{List: p.wants(o)})
	differed := slices.ContainsFunc(o.wants, func(w want) bool { return p.oracle.mayBeRewritten[w.object] || p.oracle.secrets[w.object] })
	if err == nil && (len(look.Changes) > 0 || look.Claims && !differed) {
		p.oracle.broken = fmt.Errorf("applying again would change %q, or record something: %v", look.Changes, look.Claims)
	}
	return err
}

// wants translates the wants of an operation.
func (p *play) wants(o op) (all []ledger.Want) {
	kinds := p.node.kinds()
	for _, w := range o.wants {
		sort, _, _ := strings.Cut(w.object, ":")
		l := ledger.Want{Kind: kinds[sort], Object: p.node.name(w.object), Loose: w.has("loose"), NoAdopt: !w.has("adopt"), Secret: w.has("secret"), Rewritten: w.has("rewritten")}
		if w.has("needs") {
			l.Needs = []string{ledger.Want{Kind: kinds["f"], Object: p.node.name("f:/h")}.ID()}
		}
		switch {
		case w.to == "":
		case sort == "f":
			l.To = p.node.fileState(sort)
			if content := padded(w.to); w.has("staged") {
				l.To.Size, l.To.SHA256, l.To.Content = 0, "", nil
				l.To.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
			} else {
				l.To = l.To.WithContent(content)
			}
		case sort == "d":
			l.To = p.node.fileState(sort)
		case sort == "m":
			l.To = ledger.State{Type: "mount", Value: w.to}
		default:
			l.To = ledger.State{Type: "value", Value: w.to}
		}
		all = append(all, l)
	}
	return all
}

// verify compares the node with what the oracle expects.
func (p *play) verify(o op, killed bool, err error) error {
	status, lookErr := p.look()
	if lookErr != nil {
		return lookErr
	}
	p.status = status
	recorded, begun := p.recordedIn(status), slices.ContainsFunc(status.Records, func(r ledger.Record) bool { return r.Begun })
	if o.verb == "release" || o.verb == "forget" {
		p.oracle.released(recorded)
	}
	for _, object := range objects {
		e := p.oracle.objects[object]
		if !recorded[object] && !begun {
			delete(p.oracle.claims, object)
			delete(p.oracle.vague, object)
		}
		switch {
		case (o.verb == "release" || o.verb == "forget") && !recorded[object]: // it stays as it is
			was := *e
			if e.reset(p.node.state(object)); begun {
				maps.Copy(e.originals, was.originals)
				maps.Copy(e.originals, was.ours)
				maps.Copy(e.originals, was.maybe) // what failed may have been there before the killed write
				maps.Copy(e.maybe, was.maybe)
			}
		case recorded[object] || begun:
		default:
			if err := p.oracle.violated(object); err != nil {
				return err
			}
			e.reset(p.node.state(object))
		}
	}
	if err := errors.Join(p.keepsLater(), p.oracle.broken); err != nil {
		return err
	}
	for name := range p.memory.Contents {
		_, sha256, _ := strings.Cut(name, ".")
		if (o.verb == "apply" || o.verb == "undo") && !killed && !bytes.Contains(p.memory.Content, []byte(sha256)) {
			return fmt.Errorf("content that no record names is kept: %s", sha256)
		}
	}
	if o.verb == "undo" && !killed && err == nil {
		return p.oracle.disobeyed()
	}
	if o.verb == "undo" && !killed && !hasReasons(err) {
		return fmt.Errorf("undoing fails for another reason than what others have changed: %w", err)
	}
	if o.verb == "undo" && o.step == "" && !killed {
		return p.needsStay(o.agent, recorded)
	}
	return nil
}

// hasReasons reports whether all that is left is left for what others have changed.
func hasReasons(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(err error) bool { return !hasReasons(err) })
	}
	return errors.Is(err, ledger.ErrChanged)
}

// needsStay returns an error if what an object needs is gone, that stays as another program
// has changed it.
func (p *play) needsStay(agent int, recorded map[string]bool) error {
	for _, r := range p.status.Records {
		for _, c := range ledger.Claims(r) {
			for _, id := range c.Needs {
				needed := "f:" + strings.TrimPrefix(strings.TrimPrefix(string(id), "path "), p.node.root)
				if r.Kept != "" && c.Agent == fmt.Sprintf("agent%d", agent) && p.oracle.recorded[needed] && !recorded[needed] {
					return fmt.Errorf("%s stays, and %s, which it needs, does not", r.Object, needed)
				}
			}
		}
	}
	return nil
}

func (p *play) recordedIn(status ledger.Status) map[string]bool {
	all := map[string]bool{}
	for _, r := range status.Records {
		all[p.node.objectOf(r)] = true
	}
	return all
}

func (n *node) objectOf(r ledger.Record) string {
	return r.Kind[:1] + ":" + strings.TrimPrefix(r.Object, n.root)
}

// see notes what is recorded before an operation.
func (o *oracle) see(status ledger.Status) {
	o.recorded, o.secrets, o.rewrites, o.mayBeRewritten, o.begun = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, false
	for _, r := range status.Records {
		object := o.node.objectOf(r)
		o.recorded[object] = true
		o.begun = o.begun || r.Begun
		claims := ledger.Claims(r)
		for _, c := range claims {
			o.secrets[object] = o.secrets[object] || c.Secret
			o.mayBeRewritten[object] = o.mayBeRewritten[object] || c.Rewritten
		}
		if len(claims) > 0 && !r.Begun { // the rule of which claim prevails, once more
			top := claims[0]
			for _, c := range claims {
				if top.Loose || !c.Loose || top.To.Type != c.To.Type {
					top = c
				}
			}
			o.rewrites[object] = top.Rewritten
		}
	}
}

// end undoes all agents. What others have changed is left to them, and nothing remains
// recorded.
func (p *play) end() error {
	time.Sleep(2 * time.Second)
	for agent := range 3 {
		if err := p.do(op{verb: "undo", agent: agent}); err != nil {
			return fmt.Errorf("at the end, undo %d: %w", agent, err)
		}
	}
	for agent := range 3 {
		book := p.book(agent)
		if _, err := book.Accepting().Undo(context.Background(), nil); err != nil {
			return fmt.Errorf("at the end, leave what others have changed: %w", err)
		}
	}
	for _, object := range objects {
		if err := p.oracle.violated(object); err != nil {
			return fmt.Errorf("at the end: %w", err)
		}
	}
	if left := p.node.temporary(); len(left) > 0 {
		return fmt.Errorf("at the end, killed runs have left %q", left)
	}
	status, err := p.look()
	if err != nil || len(status.Records) > 0 || p.memory.Content != nil || len(p.memory.Contents) > 0 {
		return fmt.Errorf("at the end, %d objects are recorded, and the ledger holds %d bytes and %d contents (%v)",
			len(status.Records), len(p.memory.Content), len(p.memory.Contents), err)
	}
	return nil
}

// writtenLater is the file as a later version would write it: with fields that this one
// does not know.
func writtenLater(content []byte) ([]byte, error) {
	var out bytes.Buffer
	for line := range bytes.Lines(content) {
		_, raw, isLine := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if !isLine {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, err
		}
		addLater(fields)
		for _, name := range []string{"original", "left"} {
			if state, ok := fields[name].(map[string]any); ok {
				addLater(state)
			}
		}
		claims, _ := fields["claims"].([]any)
		for _, c := range claims {
			addLater(c.(map[string]any))
		}
		raw, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		out.Write(ledger.Line(raw))
	}
	return out.Bytes(), nil
}

func addLater(fields map[string]any) { fields["later"] = map[string]any{"is": "not known yet"} }

// laterParts lists the records and claims in the file, and whether they have what a later
// version has written.
func laterParts(content []byte) (map[string]bool, error) {
	parts := map[string]bool{}
	for line := range bytes.Lines(content) {
		_, raw, isLine := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if !isLine {
			continue
		}
		var r struct {
			Seq    int
			Later  any
			Claims []struct {
				Agent, Step string
				Later       any
			}
		}
		if err := json.Unmarshal(raw, &r); err != nil {
			return nil, err
		}
		parts[fmt.Sprint(r.Seq)] = r.Later != nil
		for _, c := range r.Claims {
			parts[fmt.Sprint(r.Seq, c.Agent, c.Step)] = c.Later != nil
		}
	}
	return parts, nil
}

// keepsLater returns an error if a part has lost what a later version has written.
func (p *play) keepsLater() error {
	parts, err := laterParts(p.memory.Content)
	for part, has := range parts {
		if p.later[part] && !has {
			err = errors.Join(err, fmt.Errorf("record %s has lost what a later version has written", part))
		}
	}
	p.later = parts
	return err
}

// randomScript is a sequence of operations.
func randomScript(r *rand.Rand) (ops []op) {
	overriding := op{verb: "override"}
	for agent := range 3 {
		if r.IntN(2) == 0 {
			overriding.agents = append(overriding.agents, agent)
		}
	}
	ops = append(ops, overriding)
	agents, mortal, among := 1+r.IntN(3), r.IntN(3) > 0, objects
	if r.IntN(3) == 0 { // all about a few objects
		among = nil
		for _, i := range r.Perm(len(objects))[:1+r.IntN(3)] {
			among = append(among, objects[i])
		}
	}
	for range 2 + r.IntN(9) {
		o := randomOp(r, agents, among)
		if mortal && r.IntN(3) > 0 && (o.verb == "apply" || o.verb == "undo") {
			o.kill = 1 + r.IntN(24)
		}
		ops = append(ops, o)
	}
	return ops
}

func randomOp(r *rand.Rand, agents int, among []string) op {
	agent, object := r.IntN(agents), among[r.IntN(len(among))]
	switch n := r.IntN(40); {
	case n < 18:
		o := op{verb: "apply", agent: agent, step: string("st"[r.IntN(2)])}
		o.wants = randomWants(r, among)
		return o
	case n < 26:
		o := op{verb: "undo", agent: agent}
		if r.IntN(4) == 0 {
			o.step = string("st"[r.IntN(2)])
		}
		return o
	case n < 31:
		return op{verb: "other", object: object, to: foreign(r, object)}
	case n < 33:
		return op{verb: "torn", object: object, to: foreign(r, object)}
	case n < 35:
		return op{verb: "older", object: object, to: fmt.Sprint(r.IntN(9))}
	case n < 37:
		return op{verb: "reboot"}
	case n < 38:
		return op{verb: "later"}
	case n < 39:
		return op{verb: "release", agent: agent}
	}
	return op{verb: "forget", agent: agent, object: object}
}

// foreign is a state that another program makes.
func foreign(r *rand.Rand, object string) string {
	switch sort := object[0]; {
	case sort != 'v' && r.IntN(4) == 0:
		return ""
	case sort == 'd':
		return "dir"
	case sort == 'm':
		return fmt.Sprintf("theirs#%d", 100+r.IntN(3))
	case sort == 'f' && r.IntN(4) == 0:
		return "L" + fmt.Sprint(5+r.IntN(3))
	}
	return fmt.Sprint(5 + r.IntN(3))
}

func randomWants(r *rand.Rand, among []string) (wants []want) {
	for _, object := range objects {
		if !slices.Contains(among, object) || r.IntN(len(among)) > 3 {
			continue
		}
		w := want{object: object, to: fmt.Sprint(1 + r.IntN(3))}
		flag := func(name string, oneIn int) {
			if r.IntN(oneIn) == 0 {
				w.flags = append(w.flags, name)
			}
		}
		switch object[0] {
		case 'v':
			if r.IntN(6) == 0 {
				w.to += "x"
			}
			flag("loose", 8)
			flag("needs", 4)
		case 'd':
			w.to = "dir"
			flag("loose", 2)
		case 'm':
			w.to = "ours"
		case 'f':
			if r.IntN(3) == 0 {
				w.to = "L" + w.to
			}
			flag("staged", 3)
			flag("adopt", 6)
			flag("loose", 8)
			flag("secret", 8)
			if !w.has("loose") {
				flag("rewritten", 8)
			}
			if r.IntN(8) == 0 {
				w.to, w.flags = "", nil
			}
		}
		wants = append(wants, w)
	}
	return wants
}

// shrink drops operations from a script, and wants from the others, as long as it still fails.
func shrink(ops []op) []op {
	fails := func(smaller []op) bool {
		_, err := run(smaller)
		return err != nil
	}
	for i := 0; i < len(ops); i++ {
		if smaller := slices.Delete(slices.Clone(ops), i, i+1); fails(smaller) {
			return shrink(smaller)
		}
		for j := range ops[i].wants {
			smaller := slices.Clone(ops)
			if smaller[i].wants = slices.Delete(slices.Clone(ops[i].wants), j, j+1); fails(smaller) {
				return shrink(smaller)
			}
		}
	}
	return ops
}

func scriptOf(ops []op) string {
	var b strings.Builder
	for _, o := range ops {
		b.WriteString(o.String() + "\n")
	}
	return b.String()
}
