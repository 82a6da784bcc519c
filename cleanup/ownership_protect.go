// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// Exception is one thing that is owned although it belongs to another agent, or lies in a
// place that agents do not use. Property of the node cannot be an exception.
type Exception struct {
	// Kind is "link", "chain" (of iptables), "ipset", "file" or "directory" (with everything
	// in it). A "mount" is owned if it is in Mounts, too. A "cni-directory" or a
	// "sysctl-directory" is not owned but searched, as one for CNI or for sysctl.d files,
	// wherever it is: where the node or another agent has files, only the agent's own
	// names can be in it.
	Kind string `json:"kind"`

	// Name is the whole name, or an absolute path.
	Name string `json:"name"`
}

const (
	exceptFile   = "file"
	exceptDir    = "directory"
	exceptMount  = "mount"
	exceptCNIDir = "cni-directory"
	exceptSysctl = "sysctl-directory"
)

// checkProtected refuses fields that would match names of other owners. It runs after
// each field was checked on its own.
func (o *owned) checkProtected() error {
	if o.Agent != "" && !regexp.MustCompile(`^[a-z0-9]+([-._][a-z0-9]+)*$`).MatchString(o.Agent) {
		return fmt.Errorf("cleanup: ownership: agent %q: want small letters and digits, with single -, . and _ between them", o.Agent)
	}
	prefix := func(s string) string { return s + "*" }
	pattern := func(s string) string { return upTo(s, `*?[\`) }
	table := func(s string) string { _, name, _ := strings.Cut(s, " "); return name }
	var tables []string
	for _, t := range o.NFTables {
		tables = append(tables, t.Family+" "+t.Name)
	}
	for _, f := range []struct {
		name, kind string
		values     []string
		match      func(value string) string // the names that it matches, with * for any rest
	}{
		{"programs", kindProgram, o.Programs, strings.Clone},
		{"filters", kindProgram, o.Filters, func(s string) string { return upTo(s, "{") }},
		{"pins", kindBPFPin, o.Pins, pattern},
		{"chainPrefixes", kindChain, o.ChainPrefixes, prefix},
		{"ruleComments", kindComment, o.RuleComments, pattern},
		{"ipsetPrefixes", kindSet, o.IPSetPrefixes, prefix},
		{"nfTables", kindTable, tables, table},
	} {
		if err := every(f.values, func(value string) error { return o.refuse(f.name, f.kind, value, f.match(value), false) }); err != nil {
			return err
		}
	}
	if err := every(o.Links, func(rule LinkRule) error { return o.refuseLinks("links", rule, false) }); err != nil {
		return err
	}
	return errors.Join(o.checkExceptions(), o.checkPaths())
}

// upTo returns the literal beginning of a name with wildcards, and * for the rest.
func upTo(name, wildcards string) string {
	if i := strings.IndexAny(name, wildcards); i >= 0 {
		return name[:i] + "*"
	}
	return name
}

// covers reports whether a protected name stands for another, or for one of its parents.
func covers(name, other string) bool {
	if prefix, any := strings.CutSuffix(name, "*"); any {
		return strings.HasPrefix(other, prefix)
	}
	return other == name || strings.HasPrefix(other, name+"/")
}

// refuse returns an error if a name (or with *, any name that begins with it) is
// protected and not the agent's. The longest protected name that covers it decides, and
// each one that it covers. An exception is refused only property of the node.
func (o *owned) refuse(field, kind, value, match string, exception bool) (err error) {
	var longest protected
	other := func(p protected) bool { return !p.has(o.Agent) && !(exception && len(p.owners) > 0) }
	for _, p := range protectedNames()[kind] {
		switch literal := strings.TrimSuffix(p.name, "*"); {
		case covers(p.name, strings.TrimSuffix(match, "*")):
			if len(p.name) > len(longest.name) {
				longest = p
			}
		case err == nil && covers(match, literal) && (other(p) || exception):
			err = o.refusal(field, value, p)
		}
	}
	if longest.name != "" && other(longest) {
		return o.refusal(field, value, longest)
	}
	return err
}

// refusal returns the error for a value that would match a protected name.
func (o *owned) refusal(field, value string, p protected) error {
	owner, remedy := "the node's", "leave it out"
	if len(p.owners) > 0 {
		owner = strings.Join(p.owners, " or ") + "'s"
		remedy = "name the agent's own more exactly, give its name as agent, now %q, or name each single thing in exceptions"
		if slices.Contains([]string{"programs", "filters", "pins", "ruleComments", "nfTables"}, field) { // which have none
			remedy = "name the agent's own more exactly, or give its name as agent, now %q"
		}
		remedy = fmt.Sprintf(remedy, o.Agent)
	}
	return fmt.Errorf("cleanup: ownership: %s: %q would match the %s %s, which is %s (see %s): %s", field, value, p.kind, p.name, owner, p.source, remedy)
}

// refuseLinks is refuse for a rule for links.
func (o *owned) refuseLinks(field string, rule LinkRule, exception bool) (err error) {
	wanted, err := program(rule.Name)
	if err != nil {
		return err
	}
	names := protectedNames()[kindAnyLink]
	if rule.Kind == "" || rule.Kind == kindBridge {
		names = slices.Concat(names, protectedNames()[kindBridge])
	}
	for _, p := range names {
		if p.has(o.Agent) || exception && len(p.owners) > 0 {
			continue
		}
		if theirs, err := program(p.name); err != nil || meet(wanted, theirs) {
			return errors.Join(err, o.refusal(field, rule.Name, p))
		}
	}
	return nil
}

func program(expression string) (*syntax.Prog, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("cleanup: ownership: link rule %q: %w", expression, err)
	}
	return syntax.Compile(parsed.Simplify())
}

// meet reports whether one name can match both expressions as a whole. It takes each
// assertion, such as \b, for true.
func meet(a, b *syntax.Prog) bool {
	type pair [2]uint32
	seen, todo := map[pair]bool{}, []pair{{uint32(a.Start), uint32(b.Start)}}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		x, y := a.Inst[at[0]], b.Inst[at[1]]
		switch {
		case x.Op == syntax.InstMatch && y.Op == syntax.InstMatch:
			return true
		case x.Op == syntax.InstFail || y.Op == syntax.InstFail:
		case !ofLetter(x):
			todo = append(todo, pair{x.Out, at[1]})
			if x.Op == syntax.InstAlt || x.Op == syntax.InstAltMatch {
				todo = append(todo, pair{x.Arg, at[1]})
			}
		case !ofLetter(y):
			todo = append(todo, pair{at[0], y.Out})
			if y.Op == syntax.InstAlt || y.Op == syntax.InstAltMatch {
				todo = append(todo, pair{at[0], y.Arg})
			}
		case shareLetter(x, y):
			todo = append(todo, pair{x.Out, y.Out})
		}
	}
	return false
}

// ofLetter reports whether an instruction takes a letter, or ends the program.
func ofLetter(i syntax.Inst) bool {
	switch i.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL, syntax.InstMatch:
		return true
	}
	return false
}

// shareLetter reports whether two patterns match a common letter, of those in protected names.
func shareLetter(x, y syntax.Inst) bool {
	for letter := '!'; letter <= '~' && x.Op != syntax.InstMatch && y.Op != syntax.InstMatch; letter++ {
		if x.MatchRune(letter) && y.MatchRune(letter) {
			return true
		}
	}
	return false
}

// checkExceptions adds the exceptions to the ownership.
func (o *owned) checkExceptions() error {
	for _, e := range o.Exceptions {
		var err error
		switch e.Kind {
		case "link":
			rule := LinkRule{Name: regexp.QuoteMeta(e.Name)}
			m, compileErr := rule.compile()
			err = errors.Join(compileErr, o.refuseLinks("exceptions", rule, true))
			o.links = append(o.links, m)
		case kindChain, kindSet:
			err = o.refuse("exceptions", e.Kind, e.Name, e.Name, true)
		case exceptFile:
			o.Files = append(slices.Clip(o.Files), e.Name)
			err = o.checkException(e)
		case exceptDir:
			o.StateDirs = append(slices.Clip(o.StateDirs), e.Name)
			err = o.checkException(e)
		case exceptMount:
			err = o.checkException(e)
		case exceptCNIDir, exceptSysctl:
			err = validPath("exceptions", e.Name)
		default:
			err = errors.New("cleanup: ownership: exceptions: want the kind link, chain, ipset, file, directory, mount, cni-directory or sysctl-directory")
		}
		if err == nil && e.Name == "" {
			err = errors.New("cleanup: ownership: exceptions: the name is empty")
		}
		if err != nil {
			return fmt.Errorf("%w (of kind %q)", err, e.Kind)
		}
	}
	return nil
}

// excepts reports whether a path is an exception.
func (o *owned) excepts(kind, name string) bool {
	return slices.ContainsFunc(o.Exceptions, func(e Exception) bool { return e.Kind == kind && inRun(e.Name) == inRun(name) })
}

// checkException refuses a path that belongs to the node, contains files of other owners,
// or is a directory at the root.
func (o *owned) checkException(e Exception) error {
	if err := validPath("exceptions", e.Name); err != nil {
		return err
	}
	name := inRun(e.Name)
	if strings.Count(name, "/") == 1 {
		return fmt.Errorf("cleanup: ownership: exceptions: %q: a directory at the root cannot be owned", e.Name)
	}
	kind, element := o.place(name)
	if kind == kindCNIFile || kind == kindNetwork {
		return o.refuse("exceptions", kind, e.Name, element, true)
	}
	if err := o.refuse("exceptions", kindPath, e.Name, name, true); err != nil || kind == "" {
		return err
	}
	return o.refuse("exceptions", kind, e.Name, element, true)
}

// checkPaths refuses paths in places that agents do not use, or that have other owners.
func (o *owned) checkPaths() error {
	return cmp.Or(
		every(o.Files, func(file string) error { return o.checkPath("files", exceptFile, file) }),
		every(o.StateDirs, func(dir string) error { return o.checkPath("stateDirs", exceptDir, dir) }),
		every(o.Mounts, func(m MountRule) error { return o.checkPath("mounts", exceptMount, m.Path) }),
		every(o.SetAside, o.checkAside))
}

func (o *owned) checkAside(pattern string) error {
	if dir := path.Dir(pattern); !o.isCNIDir(dir) {
		return fmt.Errorf("cleanup: ownership: setAside: %q: %s is not a directory for CNI by its name: if it is one, name it in exceptions, as a cni-directory", pattern, dir)
	}
	_, err := o.searched("setAside", exceptFile, pattern, strings.TrimPrefix(path.Base(pattern), "*"))
	return err
}

func (o *owned) checkPath(field, kind, value string) error {
	if o.excepts(kind, value) {
		return nil // looked at as an exception
	}
	name := inRun(value)
	if agents, err := o.searched(field, kind, value, path.Base(name)); err != nil || agents {
		return err
	}
	place, element := o.place(name)
	if place == "" || place == kindDir {
		if err := o.refuse(field, kindPath, value, name, false); err != nil {
			return err
		}
	}
	if err := o.refuse(field, place, value, element, false); err != nil {
		return err
	}
	switch named := o.isAgents(place, element); {
	case place == kindNetwork && kind != exceptMount, place == kindCNIFile && kind == exceptFile, place == kindSysctlFile && kind == exceptFile,
		place == kindDir && named, place == kindCNIFile && kind == exceptDir && named:
		return nil
	}
	return fmt.Errorf("cleanup: ownership: %s: %q lies where the agent %q has nothing: want a file in a directory for CNI or of the form sysctl.d/*.conf, "+
		"or a path in a directory of the agent's name in /run, /var/lib or /var/log; or name it in exceptions, as a %s", field, value, o.Agent, kind)
}

// searched reports whether a file is the agent's by its name in a directory that only an
// exception makes one for CNI or sysctl.d files. It refuses anything else where the node or
// another agent has files, and a name that is the node's, whatever the agent is called.
func (o *owned) searched(field, kind, value, name string) (agents bool, err error) {
	dir := path.Dir(value)
	nodes := isProtected(kindPath, func(p protected) bool { return covers(p.name, value) && !covers(p.name, dir) })
	for directory, file := range map[string]string{exceptCNIDir: kindCNIFile, exceptSysctl: kindSysctlFile} {
		switch {
		case !o.excepts(directory, dir), cniDir.MatchString(dir), path.Base(dir) == sysctlDir:
		case kind == exceptFile && !nodes && o.isAgents(file, name):
			return true, nil
		default:
			err = o.checkException(Exception{directory, dir})
		}
	}
	if err != nil {
		err = fmt.Errorf("cleanup: ownership: %s: %q: only names of the agent %q are searched for there: %w", field, value, o.Agent, err)
	}
	return false, err
}

// isAgents reports whether an element of a path is the agent's by its name.
func (o *owned) isAgents(kind, element string) bool {
	return o.isNamed(element) || isProtected(kind, func(p protected) bool { return p.has(o.Agent) && covers(p.name, element) })
}

// isNamed reports whether a name is the agent's, or begins with that and no letter or digit.
func (o *owned) isNamed(element string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(element, "."), o.Agent)
	return ok && o.Agent != "" && (rest == "" || strings.ContainsAny(rest[:1], "-_."))
}

// The places where agents have something, wherever they are: strictly confined and
// prefixed installations have their own.
var (
	cniDir         = regexp.MustCompile(`/net\.d$|[-_./]cni([-_.][^/]*)?(/(bin|plugins|conf|conf\.d))?$`)
	networkDir     = regexp.MustCompile(`/var/lib/cni/networks/([^/]+)`)
	stateDirectory = regexp.MustCompile(`/(?:run|var/lib|var/log)/([^/]+)`)
)

const sysctlDir = "sysctl.d"

// isCNIDir reports whether plugins or configurations of CNI are in a directory, by its
// name.
func (o *owned) isCNIDir(dir string) bool {
	if o.excepts(exceptCNIDir, dir) {
		return true
	}
	for _, kernels := range []string{"/proc/", "/sys/", "/dev/"} {
		if strings.HasPrefix(dir, kernels) {
			return false
		}
	}
	return cniDir.MatchString(dir)
}

// place returns the kind of place in which a path lies, and the protected element of the
// path.
func (o *owned) place(name string) (kind, element string) {
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	in := stateDirectory.FindStringSubmatch(name)
	switch m := networkDir.FindStringSubmatch(name); {
	case m != nil:
		return kindNetwork, m[1]
	case o.isCNIDir(dir) && (in == nil || !o.isOthers(in[1])),
		path.Base(dir) == "bin" && o.isNamed(base):
		return kindCNIFile, base
	case (path.Base(dir) == sysctlDir || o.excepts(exceptSysctl, dir)) && path.Ext(base) == ".conf":
		return kindSysctlFile, base
	case in != nil:
		return kindDir, in[1]
	}
	return "", ""
}

// isOthers reports whether a state directory belongs to another agent.
func (o *owned) isOthers(directory string) bool {
	return isProtected(kindDir, func(p protected) bool {
		return covers(p.name, directory) && len(p.owners) > 0 && !p.has("cni-plugins") && !p.has(o.Agent)
	})
}

// inRun returns a clean path, in /run if it is in /var/run, which leads there.
func inRun(name string) string {
	name = path.Clean(name)
	if rest, ok := strings.CutPrefix(name, "/var/run/"); ok {
		return "/run/" + rest
	}
	return name
}
