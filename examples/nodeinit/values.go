// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/containernetworking/cni/pkg/utils"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/cniinstall"
	"github.com/slipway-dev/slipway/configresolve/kube"
	"github.com/slipway-dev/slipway/sysctl"
)

// The checks of values that the table names.

func absolute(path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("must be an absolute path")
	}
	return nil
}

func agentName(name string) error {
	return (&ledger.Ledger{Agent: name, NoOwner: true}).Validate()
}

func ownerName(name string) error { return (&ledger.Ledger{Agent: "x", Owner: name}).Validate() }

func stateDir(path string) error {
	return (&ledger.Ledger{Dir: path, Agent: "x", NoOwner: true}).Validate()
}

func capability(name string) error { _, err := capabilityNumbers([]string{name}); return err }

func routingTable(number string) error {
	if n, err := strconv.ParseUint(number, 10, 32); err != nil || n == 0 {
		return errors.New("must be the number of a routing table")
	}
	return nil
}

func exception(text string) error {
	if !strings.Contains(text, ":") {
		return errors.New("want KIND:NAME")
	}
	return nil
}

// ending wants a file's name to end in that: a slip of the hand replaces no other file, and
// node_exporter's collector reads no other.
func ending(suffix string) func(path string) error {
	return func(path string) error {
		if filepath.Ext(path) != suffix {
			return errors.New("must end in " + suffix)
		}
		return nil
	}
}

func fileName(name string) error {
	if name != filepath.Base(name) || name == "." || name == ".." || !utf8.ValidString(name) {
		return errors.New("must be a name, without a slash")
	}
	return nil
}

// fields checks an installation of nothing: no more than its fields is looked at.
func fields(i cniinstall.Install) error {
	_, err := i.Wants(context.Background())
	return err
}

// cniConfName has its suffix: cleanup knows the file by its whole name.
func cniConfName(name string) error {
	if filepath.Ext(name) == "" {
		return errors.New("must end in .conflist, .conf or .json")
	}
	return fields(cniinstall.Install{ConfName: name})
}

// confName is the name of a sysctl drop-in.
func confName(name string) error {
	if filepath.Ext(name) != ".conf" || name == ".conf" {
		return errors.New("must end in .conf: nothing else in the directory is read")
	}
	return fileName(name)
}

func suffix(s string) error {
	if !strings.HasPrefix(s, ".") || slices.Contains([]string{".", ".conf", ".conflist", ".json"}, filepath.Ext(s)) {
		return errors.New("must begin with a dot, and be none by which runtimes load a file")
	}
	return fileName("x" + s)
}

func setting(line string) error {
	_, err := sysctl.Parse(strings.NewReader(line))
	return err
}

func configKey(key string) error { return invalid(validation.IsConfigMapKey(key)) }

func apiServer(url string) error {
	return kube.Connection{Servers: withScheme([]string{url})}.Validate()
}

func network(name string) error {
	if name == "*" {
		return nil
	}
	if err := utils.ValidateNetworkName(name); err != nil {
		return errors.New("must be the name of a network, or *")
	}
	return nil
}

func oneOf(value string, all []string) error {
	if !slices.Contains(all, value) {
		return fmt.Errorf("must be one of %s%s", strings.Join(all, ", "), didYouMean(value, all))
	}
	return nil
}

func invalid(why []string) error {
	if len(why) > 0 {
		return errors.New(why[0])
	}
	return nil
}
