// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package bootstrap_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/bootstrap"
	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// greeting wants a file with a text.
type greeting struct{ path, text string }

func (g greeting) Wants(context.Context) (ledger.Wants, error) {
	return ledger.Wants{List: []ledger.Want{ledger.FileWant(g.path, 0o644, []byte(g.text))}}, nil
}

// An agent's start, the start of the pod that replaces it in a rolling update, the end of the
// first pod, which no longer has a say, and the removal of the agent.
func Example_ledger() {
	node, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(node)
	motd := filepath.Join(node, "motd")
	if err := os.WriteFile(motd, []byte("hello"), 0o644); err != nil {
		log.Fatal(err)
	}
	plan := func(podUID string) *bootstrap.Plan { // on a real node neither LockFile nor Dir is set
		return &bootstrap.Plan{
			Host:   hostns.Host{Here: true, LockFile: filepath.Join(node, "lock")},
			Ledger: &ledger.Ledger{Dir: filepath.Join(node, "ledger"), Agent: "acme", Owner: podUID},
			Steps: []bootstrap.Step{
				{Name: "motd", Wants: greeting{motd, "acme's node"}},
				{Name: "issue", Wants: greeting{filepath.Join(node, "issue"), "acme"}, After: []string{"motd"}},
			},
		}
	}
	show := func(event string, report *bootstrap.Report, err error) {
		fmt.Println(event, report.Summary(), err)
		for _, r := range report.Results {
			for _, change := range r.Changes {
				fmt.Printf("  %s: %s\n", r.Step, strings.ReplaceAll(change, node, ""))
			}
		}
	}

	ctx, older, newer := context.Background(), plan("pod-1"), plan("pod-2")
	report, err := older.Apply(ctx)
	show("the first pod starts:", report, err)
	report, err = newer.Apply(ctx) // everything is in place: it only becomes the owner
	show("the second pod starts:", report, err)
	_, err = older.Uninstall(ctx)
	fmt.Println("the first pod may not undo it:", errors.Is(err, ledger.ErrNotOwner))
	report, err = newer.Uninstall(ctx)
	show("the agent is removed:", report, err)
	text, err := os.ReadFile(motd)
	fmt.Println(string(text), err)
	// Output:
	// the first pod starts: 2 steps: 2 changed <nil>
	//   motd: replace file /motd
	//   issue: write file /issue
	// the second pod starts: 2 steps: 2 unchanged <nil>
	// the first pod may not undo it: true
	// the agent is removed: 2 steps: 2 changed <nil>
	//   issue: remove file /issue
	//   motd: replace file /motd, as another program left it
	// hello <nil>
}
