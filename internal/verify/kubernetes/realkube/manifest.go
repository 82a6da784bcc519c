// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Document is one object of a manifest, with its path in the API.
type Document struct{ Kind, Path, Text string }

var (
	kindLine = regexp.MustCompile(`(?m)^kind: (\S+)$`)
	nameLine = regexp.MustCompile(`(?m)^metadata:\n  name: (\S+)\n(?:  namespace: (\S+)\n)?`)
	ruleText = regexp.MustCompile(`(?m)^  - apiGroups: \[(.*)\]\n    resources: \[(.*)\]\n(?:    resourceNames: \[(.*)\]\n)?    verbs: \[(.*)\]\n?`)
)

const rbac = "/apis/rbac.authorization.k8s.io/v1/%s"

// places are the API paths of the kinds that we ship; in between is the namespace, if there is one.
var places = map[string]string{
	"ServiceAccount":                   "/api/v1/%sserviceaccounts/",
	"DaemonSet":                        "/apis/apps/v1/%sdaemonsets/",
	"Role":                             rbac + "roles/",
	"RoleBinding":                      rbac + "rolebindings/",
	"ClusterRole":                      rbac + "clusterroles/",
	"ClusterRoleBinding":               rbac + "clusterrolebindings/",
	"FlowSchema":                       "/apis/flowcontrol.apiserver.k8s.io/v1/%sflowschemas/",
	"PriorityLevelConfiguration":       "/apis/flowcontrol.apiserver.k8s.io/v1/%sprioritylevelconfigurations/",
	"ValidatingAdmissionPolicy":        "/apis/admissionregistration.k8s.io/v1/%svalidatingadmissionpolicies/",
	"ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/%svalidatingadmissionpolicybindings/",
}

// Manifest reads the documents of a file, with replacements given as pairs.
func Manifest(file string, replaced ...string) ([]Document, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Documents(strings.NewReplacer(replaced...).Replace(string(raw)))
}

// Documents returns the documents of a manifest.
func Documents(manifest string) (all []Document, err error) {
	for text := range strings.SplitSeq(manifest, "\n---\n") {
		kind, name := kindLine.FindStringSubmatch(text), nameLine.FindStringSubmatch(text+"\n")
		if kind == nil || name == nil || places[kind[1]] == "" {
			return nil, fmt.Errorf("no object of a known kind:\n%s", text)
		}
		namespace := name[2]
		if namespace != "" {
			namespace = "namespaces/" + namespace + "/"
		}
		all = append(all, Document{kind[1], fmt.Sprintf(places[kind[1]], namespace) + name[1], text})
	}
	return all, nil
}

// Rule is a rule of a Role or a ClusterRole, as the manifest has it.
type Rule struct{ Text, Group, Resource, Names, Verb string }

// Rules returns a document's rules, of one resource and one verb each.
func (d Document) Rules() (all []Rule) {
	for _, m := range ruleText.FindAllStringSubmatch(d.Text, -1) {
		all = append(all, Rule{m[0], strings.Trim(m[1], `"`), m[2], m[3], strings.Trim(m[4], `"`)})
	}
	return all
}

// Without returns a role's text without some of its rules.
func (d Document) Without(left func(Rule) bool) string {
	text := d.Text
	for _, rule := range d.Rules() {
		if left(rule) {
			text = strings.Replace(text, rule.Text, "", 1)
		}
	}
	if strings.HasSuffix(text, "rules:\n") {
		text = strings.TrimSuffix(text, "rules:\n") + "rules: []\n"
	}
	return text
}

// Images are fifty images in the status of a node, as a kubelet reports them.
func Images() (all []map[string]any) {
	for i := range 50 {
		name, digest := fmt.Sprintf("registry.example.org/platform/component-%02d", i), strings.Repeat(fmt.Sprintf("%02x", i), 32)
		all = append(all, map[string]any{"sizeBytes": 100000000 + i, "names": []string{name + "@sha256:" + digest, fmt.Sprintf("%s:v1.2.%d", name, i)}})
	}
	return all
}
