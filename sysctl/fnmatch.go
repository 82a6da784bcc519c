// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl

import "strings"

// fnmatch reports whether name matches pattern as fnmatch(3) decides it in the C
// locale with FNM_PERIOD, which is what glob(3) uses: byte by byte, and a leading
// dot only by a dot.
func fnmatch(pattern, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(strings.TrimPrefix(pattern, `\`), ".") {
		return false
	}
	var afterStar, tried string // where to go on if what follows the last * does not match
	star := false
	for {
		if rest, ok := strings.CutPrefix(pattern, "*"); ok {
			pattern, afterStar, tried, star = rest, rest, name, true
			continue
		}
		if name == "" && pattern == "" {
			return true
		}
		if name != "" {
			if rest, ok := matchByte(pattern, name[0]); ok {
				pattern, name = rest, name[1:]
				continue
			}
		}
		if !star || tried == "" {
			return false
		}
		tried = tried[1:]
		pattern, name = afterStar, tried
	}
}

// matchByte matches c with the first element of pattern, which is no *, and
// returns the rest of pattern.
func matchByte(pattern string, c byte) (rest string, ok bool) {
	if pattern == "" {
		return "", false
	}
	switch rest = pattern[1:]; pattern[0] {
	case '?':
		return rest, true
	case '\\':
		return matchLiteral(rest, c)
	case '[':
		if set, after, closed := parseSet(rest); closed {
			return after, set.matches(c)
		}
	}
	return matchLiteral(pattern, c) // a [ that nothing closes stands for itself
}

func matchLiteral(pattern string, c byte) (rest string, ok bool) {
	if pattern == "" {
		return "", false
	}
	return pattern[1:], pattern[0] == c
}

// byteSet is what stands in brackets.
type byteSet struct {
	not, invalid bool // an invalid set matches nothing
	bytes        [256]bool
}

func (s *byteSet) matches(c byte) bool { return !s.invalid && s.bytes[c] != s.not }

// parseSet reads a set up to its closing bracket. A ] at its beginning belongs to it.
func parseSet(s string) (set byteSet, rest string, closed bool) {
	if s != "" && (s[0] == '!' || s[0] == '^') {
		set.not, s = true, s[1:]
	}
	for first := true; s != ""; first = false {
		if s[0] == ']' && !first {
			return set, s[1:], true
		}
		if name, after, ok := cutClass(s); ok {
			set.addClass(name)
			s = after
			continue
		}
		from, after, ok := cutByte(s)
		if !ok {
			return set, "", false
		}
		to := from
		if len(after) > 1 && after[0] == '-' && after[1] != ']' {
			if to, after, ok = cutByte(after[1:]); !ok {
				return set, "", false
			}
		}
		for c := int(from); c <= int(to); c++ {
			set.bytes[c] = true
		}
		s = after
	}
	return set, "", false
}

// cutClass cuts a class such as [:alpha:] off s.
func cutClass(s string) (name, rest string, ok bool) {
	after, ok := strings.CutPrefix(s, "[:")
	if !ok {
		return "", s, false
	}
	name, rest, ok = strings.Cut(after, ":]")
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "" {
		return "", s, false
	}
	return name, rest, ok
}

// cutByte cuts a byte off s, which may be escaped, or written as [=a=] or [.a.].
func cutByte(s string) (c byte, rest string, ok bool) {
	if len(s) >= 5 && s[0] == '[' && (s[1] == '=' || s[1] == '.') && s[3] == s[1] && s[4] == ']' {
		return s[2], s[5:], true
	}
	s = strings.TrimPrefix(s, `\`)
	if s == "" {
		return 0, "", false
	}
	return s[0], s[1:], true
}

// addClass adds what isalpha(3) and its like are true of in the C locale.
func (s *byteSet) addClass(name string) {
	is, known := map[string]func(c byte) bool{
		"alnum": isAlnum,
		"alpha": func(c byte) bool { return isLower(c) || isUpper(c) },
		"blank": func(c byte) bool { return c == ' ' || c == '\t' },
		"cntrl": func(c byte) bool { return c < ' ' || c == 0x7f },
		"digit": isDigit,
		"graph": isGraph,
		"lower": isLower,
		"print": func(c byte) bool { return isGraph(c) || c == ' ' },
		"punct": func(c byte) bool { return isGraph(c) && !isAlnum(c) },
		"space": func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
		"upper": isUpper,
		"xdigit": func(c byte) bool {
			return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		},
	}[name]
	s.invalid = s.invalid || !known
	for c := range s.bytes {
		s.bytes[c] = s.bytes[c] || known && is(byte(c))
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isAlnum(c byte) bool { return isDigit(c) || isLower(c) || isUpper(c) }
func isGraph(c byte) bool { return ' ' < c && c < 0x7f }
