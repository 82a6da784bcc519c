// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/slipway-dev/slipway/cniinstall"
)

// An agent's plugin joins another CNI's network once that is configured, whatever its plugins
// are.
func ExampleChained() {
	conf, err := os.MkdirTemp("", "net.d")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(conf)
	chained := cniinstall.Chained{
		Network: "blue", // "*" selects the one a runtime would use
		Plugin:  json.RawMessage(`{"type":"acme-cni","mtu":1450}`),
	}
	install := cniinstall.Install{Config: chained, ConfName: "05-acme.conflist"} // set Plugins too
	install.ConfDir = conf                                                       // the zero value is /etc/cni/net.d

	ctx := context.Background()
	_, err = install.Check(ctx)
	fmt.Println(errors.Is(err, cniinstall.ErrTargetMissing))

	other := `{"cniVersion": "1.0.0", "name": "blue", "type": "blue-cni", "mtu": 1500}`
	if err := os.WriteFile(filepath.Join(conf, "10-blue.conf"), []byte(other), 0o644); err != nil {
		log.Fatal(err)
	}
	list, err := cniinstall.Chain([]byte(other), chained.Plugin) // what Apply publishes
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", list)
	// Output:
	// true
	// {
	//   "cniVersion": "1.0.0",
	//   "name": "blue",
	//   "plugins": [
	//     {
	//       "cniVersion": "1.0.0",
	//       "name": "blue",
	//       "type": "blue-cni",
	//       "mtu": 1500
	//     },
	//     {
	//       "type": "acme-cni",
	//       "mtu": 1450
	//     }
	//   ]
	// }
}
