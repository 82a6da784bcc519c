// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package ledger_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
)

// Two agents want a file, and it goes with the last of them.
func Example() {
	dir, err := os.MkdirTemp("", "ledger")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, file := context.Background(), filepath.Join(dir, "10-net.conf")
	wants := ledger.Wants{List: []ledger.Want{ledger.FileWant(file, 0o644, []byte("ours\n"))}}
	open := func(agent string) *ledger.Book {
		book, err := (&ledger.Ledger{Dir: filepath.Join(dir, "state"), Agent: agent, NoOwner: true}).Open(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		return book
	}
	acme, mesh := open("acme"), open("mesh")
	defer acme.Close()
	defer mesh.Close()
	for _, book := range []*ledger.Book{acme, mesh} {
		if _, err := book.Apply(ctx, "network", wants); err != nil {
			log.Fatal(err)
		}
	}
	for _, book := range []*ledger.Book{acme, mesh} {
		undone, err := book.Undo(ctx, nil)
		if err != nil {
			log.Fatal(err)
		}
		_, err = os.Stat(file)
		fmt.Println(len(undone), "object; the file exists:", err == nil)
	}
	// Output:
	// 1 object; the file exists: true
	// 1 object; the file exists: false
}
