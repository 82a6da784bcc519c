// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/failure"
	"github.com/slipway-dev/slipway/internal/printable"
	"github.com/slipway-dev/slipway/internal/waiting"
)

const askEvery = 250 * time.Millisecond

// loads reports whether the runtime has loaded a configuration with this content: a
// list of plugins, or a single one.
func (s status) loads(conf []byte) (bool, error) {
	var want any
	if err := json.Unmarshal(conf, &want); err != nil {
		return false, fmt.Errorf("the configuration to load: %w", err)
	}
	for _, n := range s.Networks {
		var list map[string]any
		if n.Source == string(conf) {
			return true, nil
		}
		if countElements(n.Source) != nil || json.Unmarshal([]byte(n.Source), &list) != nil {
			continue
		}
		if reflect.DeepEqual(any(list), want) || reflect.DeepEqual(list["plugins"], []any{want}) {
			return true, nil
		}
	}
	return false, nil
}

// using describes in one line what the runtime has loaded.
func (s status) using() string {
	var all []string
	for _, n := range s.Networks {
		all = append(all, fmt.Sprintf("%q", n.Name))
	}
	text := "it has loaded " + cmp.Or(strings.Join(all, ", "), "none")
	if s.LastLoad != "OK" {
		text += "; it says: " + s.LastLoad
	}
	return printable.Line(text)
}

// Loaded is the state in which the container runtime has loaded a configuration: its
// Apply waits for that. Put it into a plan after the step that installs the
// configuration, with a Timeout. It is a bootstrap.Action.
type Loaded struct {
	// Endpoint is the runtime's. While Apply waits, the runtime may start, or move to
	// another socket.
	Endpoint Endpoint

	// Conf returns the content of the configuration's file. If it is missing, Check
	// returns the error of Conf.
	Conf func(context.Context) ([]byte, error)
}

// Check reports a change while the runtime has not loaded the configuration. A runtime
// that is missing, or does not answer, has not loaded it.
func (l Loaded) Check(ctx context.Context) ([]string, error) {
	said, err := l.look(ctx)
	if err != nil || said == "" {
		return nil, err
	}
	return []string{"wait for the container runtime to load the configuration: " + said}, nil
}

// Advise says that nothing is waited for, if the runtime does not report what it has loaded.
func (l Loaded) Advise(ctx context.Context) ([]string, error) {
	s, err := l.Endpoint.status(ctx)
	if err != nil || s.LastLoad != "" {
		return nil, ctx.Err() // Check reports other errors
	}
	return []string{"the container runtime does not report which networks it has loaded (containerd does): nothing is waited for"}, nil
}

// Apply waits until the runtime has loaded the configuration, or ctx ends. In that case
// the error names what it has loaded instead.
func (l Loaded) Apply(ctx context.Context) error {
	said, waits := "", waiting.Wait{}
	defer waits.End()
	for {
		now, err := l.look(ctx)
		if err != nil || now == "" {
			return err
		}
		if said == "" || ctx.Err() == nil { // else the error only shows that there was no time to answer
			said = now
			waits.For(ctx, "the container runtime to load the configuration: "+said, 0)
		}
		if failure.Sleep(ctx, askEvery) == nil {
			continue
		}
		err = fmt.Errorf("the container runtime has not loaded the configuration: %s: %w", said, context.Cause(ctx))
		if errors.Is(ctx.Err(), context.Canceled) { // by others: it shows nothing about the runtime
			return err
		}
		return code.Wrap(code.CRINotLoaded, err)
	}
}

// look describes why the configuration is not loaded; empty if it is, or if that cannot be
// told, as Advise says. An error means that waiting does not help.
func (l Loaded) look(ctx context.Context) (said string, err error) {
	s, err := l.Endpoint.status(ctx)
	if err == nil && s.LastLoad == "" {
		return "", nil
	}
	if l.Conf == nil {
		return "", errors.New("no function given that reads the configuration to load")
	}
	conf, errConf := l.Conf(ctx)
	switch {
	case errConf != nil:
		return "", errConf
	case errors.Is(err, errors.ErrUnsupported), errors.Is(err, errSeveral):
		return "", err
	case err != nil:
		return err.Error(), nil
	}
	loaded, err := s.loads(conf)
	if err != nil || loaded {
		return "", err
	}
	return s.using(), nil
}
