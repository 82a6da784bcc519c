// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const auditFile = "audit.log"

// The API server writes an event before it completes its answer, so a client that has an answer
// finds the event. The server's own requests and probes are left out.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver"]
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*", "/metrics"]
- level: Metadata
`

// Event is a request in the audit log. A watch has two events: when it was answered and when it
// ended.
type Event struct {
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Group     string `json:"apiGroup"`
		Version   string `json:"apiVersion"`
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// String is the abbreviated request: verb, version, resource and answer.
func (e Event) String() string {
	return fmt.Sprintf("%s %s %s %d", e.Verb, e.Object.Version, e.Object.Resource, e.Response.Code)
}

// AuditMark returns the present end of the audit log.
func (s *Server) AuditMark() (int64, error) {
	info, err := os.Stat(filepath.Join(s.dir, auditFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Audit returns the events of the audit log since mark, in order, for the given user agent, or
// for all if that is empty.
func (s *Server) Audit(mark int64, userAgent string) ([]Event, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, auditFile))
	if err != nil {
		return nil, err
	}
	var events []Event
	lines := bufio.NewScanner(bytes.NewReader(text[min(mark, int64(len(text))):]))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(whole(lines.Bytes()), &e); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if userAgent == "" || e.UserAgent == userAgent {
			events = append(events, e)
		}
	}
	return events, lines.Err()
}

// whole is the last event of a line: where a server was killed while it wrote, the next
// one goes on in the same line.
func whole(line []byte) []byte {
	return line[max(bytes.LastIndex(line, []byte(`{"kind":"Event","apiVersion":"audit.k8s.io/`)), 0):]
}
