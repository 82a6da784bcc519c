// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package critest is a container runtime for tests, with as much of the CRI as package
// cri uses.
//
//	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "containerd.sock"))
//	critest.Serve(t, listener, critest.Runtime{Info: critest.Containerd(nil, "/etc/cni/net.d", "/opt/cni/bin")})
//
// It serves HTTP/2 in clear text, as gRPC does, and needs neither root nor Linux.
// For the runtime of a throw-away node, make the listener with bootstraptest.Node.Listen.
// Do not use it to prove that a runtime takes a configuration: it reads none, other than
// [CRIO].
package critest

import (
	"encoding/binary"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Runtime answers RuntimeService/Status, Version and ListPodSandbox. It is an
// [http.Handler].
type Runtime struct {
	// Info is called for each verbose status, and returns its map info. It may be nil.
	Info func() map[string]string

	// Name and Version identify the runtime. If empty, it does not report them.
	Name, Version string

	// Sandboxes is called for each request to list the pod sandboxes, and returns their
	// IDs. If nil, there are none.
	Sandboxes func() []string

	// Config is served at /config, as by CRI-O. If empty, /config is not served.
	Config string

	unready bool // its network
}

// Containerd returns the info of a containerd that looks in these directories, and has
// loaded the conflist; nil: no network.
func Containerd(conflist []byte, confDir string, pluginDirs ...string) func() map[string]string {
	if conflist == nil {
		return containerd("cni config load failed: no network config found in "+confDir+": cni plugin not initialized: failed to load cni config",
			[]any{}, confDir, pluginDirs)
	}
	var list struct {
		Name    string
		Plugins []json.RawMessage
	}
	_ = json.Unmarshal(conflist, &list) // an invalid one is reported as it is, without a name
	var plugins []any
	for _, p := range list.Plugins {
		plugins = append(plugins, map[string]any{"Network": p, "Source": string(p)})
	}
	config := map[string]any{"Name": list.Name, "CNIVersion": "1.0.0", "Plugins": plugins, "Source": string(conflist)}
	return containerd("OK", []any{map[string]any{"Config": config, "IFName": "eth0"}}, confDir, pluginDirs)
}

func containerd(lastLoad string, networks []any, confDir string, pluginDirs []string) func() map[string]string {
	return func() map[string]string {
		return map[string]string{
			"cniconfig":         encode(map[string]any{"PluginDirs": pluginDirs, "PluginConfDir": confDir, "PluginMaxConfNum": 1, "Prefix": "eth", "Networks": networks}),
			"lastCNILoadStatus": lastLoad,
		}
	}
}

func encode(v any) string {
	text, _ := json.Marshal(v) // it consists of what can be encoded
	return string(text)
}

// Serve serves the handler, such as a [Runtime], until the test ends.
func Serve(t testing.TB, l net.Listener, handler http.Handler) {
	t.Helper()
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: &protocols}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close() // connections of unanswered clients may still be open
		<-ended
	})
}

// ServeHTTP answers like the runtime.
func (r Runtime) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	const service = "/runtime.v1.RuntimeService/"
	message, found := map[string]func() []byte{service + "Status": r.status, service + "Version": r.version, service + "ListPodSandbox": r.sandboxes}[req.URL.Path]
	switch {
	case req.URL.Path == "/config" && r.Config != "":
		w.Header().Set("Content-Type", "application/toml")
		_, _ = w.Write([]byte(r.Config)) // a client that has gone needs no answer
	case req.ProtoMajor != 2:
		http.NotFound(w, req)
	case !found:
		refuse(w, 12, "unknown service "+strings.TrimPrefix(req.URL.Path, "/"))
	default:
		answer(w, message())
	}
}

// answer sends a message of gRPC, and the status OK.
func answer(w http.ResponseWriter, message []byte) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...))
	w.Header().Set("Grpc-Status", "0")
}

// refuse sends a gRPC error.
func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", encode(code))
	w.Header().Set("Grpc-Message", url.PathEscape(message))
}

// status is a StatusResponse of the CRI.
func (r Runtime) status() (message []byte) {
	conditions := appendField(nil, 1, string(append(appendField(nil, 1, "RuntimeReady"), 2<<3, 1)))
	network := appendField(nil, 1, "NetworkReady")
	if !r.unready {
		network = append(network, 2<<3, 1)
	}
	conditions = appendField(conditions, 1, string(network))
	message = appendField(nil, 1, string(conditions))
	if r.Info == nil {
		return message
	}
	for key, value := range r.Info() {
		message = appendField(message, 2, string(appendField(appendField(nil, 1, key), 2, value)))
	}
	return message
}

// version is a VersionResponse of the CRI.
func (r Runtime) version() []byte {
	message := appendField(appendField(nil, 1, "0.1.0"), 2, r.Name)
	return appendField(appendField(message, 3, r.Version), 4, "v1")
}

// sandboxes is a ListPodSandboxResponse of the CRI, with some of the fields that a
// runtime fills in.
func (r Runtime) sandboxes() (message []byte) {
	if r.Sandboxes == nil {
		return nil
	}
	for _, id := range r.Sandboxes() {
		pod := appendField(appendField(appendField(nil, 1, "pod"), 2, "uid"), 3, "default")
		label := appendField(appendField(nil, 1, "app"), 2, "test")
		sandbox := appendField(appendField(nil, 1, id), 2, string(pod))
		sandbox = append(sandbox, 3<<3, 1, 4<<3, 42) // not ready; when it was made
		message = appendField(message, 1, string(appendField(sandbox, 5, string(label))))
	}
	return message
}

// appendField appends a string or a message.
func appendField(to []byte, number byte, value string) []byte {
	return append(binary.AppendUvarint(append(to, number<<3|2), uint64(len(value))), value...)
}
