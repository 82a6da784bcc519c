// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/slipway-dev/slipway/configresolve"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/input"
	"github.com/slipway-dev/slipway/internal/printable"
)

// Client reads from a cluster. Sources that share a Client also share the objects
// that they read. Make one with [Connection.Client], or from your own clients.
type Client struct {
	Dynamic  dynamic.Interface
	Metadata metadata.Interface
}

// Connection describes how to reach the API server. The zero value connects to the
// cluster that the process runs in, with its ServiceAccount and the environment
// variables of the kubernetes service.
type Connection struct {
	// Kubeconfig is the path of a kubeconfig file, whose current context is used. If
	// empty, no file is read.
	Kubeconfig string

	// Servers are URLs of the API servers of one cluster. They are tried in turn,
	// instead of the server that the kubeconfig or the environment names. Without a
	// kubeconfig, https servers get the ServiceAccount's credentials, and plain http
	// servers get none.
	Servers []string

	// UserAgent is the user agent shown in the API server's audit log. If empty, it
	// is client-go's.
	UserAgent string

	// Spread is the longest random wait between two attempts, so that nodes that
	// fail together do not all return at the same moment. Zero means one minute,
	// with which thousands of nodes can boot while their API server restarts. A
	// small cluster can use a shorter one.
	Spread time.Duration

	// Mark, unless it is 0, is a packet mark (SO_MARK of socket(7)) for servers
	// that do not answer without it, such as the mark that passes an agent's own
	// firewall regardless of its policy (Agent.Mark). The first attempt never has
	// it, since marked packets do not arrive in some networks (those of IPVS, for
	// example); but if there is no connection within two seconds, or it is refused,
	// attempts with and without it alternate. The same applies to queries for a
	// server's name. Setting it needs Linux and CAP_NET_ADMIN; without these,
	// connections are made without it.
	Mark uint32

	// Dialed, if set, is called for each attempt to connect, from several
	// goroutines.
	Dialed func(Attempt)

	// DialTimeout is how long it may take to connect. Zero means 30 seconds; negative,
	// as long as a request may.
	DialTimeout time.Duration

	// KeepAlive is the time between two keep-alive probes of an idle connection. Zero
	// means 30 seconds; negative, there are none.
	KeepAlive time.Duration

	// QPS, if positive, limits the requests a second to the servers, including
	// retries, after an initial burst of Burst requests (one if zero).
	QPS   float32
	Burst int

	// Wrap, if set, wraps the transport below the retries, so it sees each attempt.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Client makes a client. It does not connect.
func (c Connection) Client() (*Client, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	client := &Client{}
	shared, err := rest.HTTPClientFor(config)
	if err == nil {
		client.Dynamic, err = dynamic.NewForConfigAndClient(config, shared)
	}
	if err == nil {
		client.Metadata, err = metadata.NewForConfigAndClient(config, shared)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return client, nil
}

// Config returns the client-go configuration that Client uses, for other clients of
// the caller. Retries are built in, and the limit of QPS, which all of them share. JSON is
// asked for and decoded, whatever format a client prefers. Each answer but the events of a
// watch is read as a whole, within bounds, so these clients cannot follow logs, execute
// commands or forward ports.
func (c Connection) Config() (*rest.Config, error) {
	servers, err := c.servers()
	if err != nil {
		return nil, err
	}
	config, err := c.base(servers)
	if err != nil {
		return nil, err
	}
	if len(servers) > 0 {
		config.Host = servers[0].String()
	}
	if c.UserAgent != "" {
		config.UserAgent = c.UserAgent
	}
	if c.Mark != 0 || c.DialTimeout != 0 || c.KeepAlive != 0 || c.Dialed != nil {
		config.Dial = dialer{c.Mark, c.DialTimeout, c.KeepAlive, c.Dialed}.DialContext
	}
	config.QPS = -1                           // the transport has the limit
	config.WarningHandler = rest.NoWarnings{} // the default one prints
	if c.Wrap != nil {
		config.Wrap(c.Wrap)
	}
	limit := c.limit()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return newRetrier(next, servers, c.Spread, limit) })
	return config, nil
}

// limit returns the rate limiter for QPS and Burst.
func (c Connection) limit() flowcontrol.RateLimiter {
	if c.QPS <= 0 {
		return flowcontrol.NewFakeAlwaysRateLimiter()
	}
	return flowcontrol.NewTokenBucketRateLimiter(c.QPS, max(c.Burst, 1))
}

// Validate returns an error for the first invalid URL in Servers, without reading a kubeconfig.
func (c Connection) Validate() error {
	_, err := c.servers()
	return err
}

func (c Connection) servers() ([]*url.URL, error) {
	var servers []*url.URL
	for _, text := range c.Servers {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("API server URL %q: want http:// or https://, a host, and no path", printable.NoCredentials(text))
		}
		servers = append(servers, &url.URL{Scheme: u.Scheme, Host: u.Host})
	}
	return servers, nil
}

func (c Connection) base(servers []*url.URL) (*rest.Config, error) {
	plain := 0
	for _, u := range servers {
		if u.Scheme == "http" {
			plain++
		}
	}
	if c.Kubeconfig != "" {
		config, err := fromKubeconfig(c.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", c.Kubeconfig, err)
		}
		if rest.IsConfigTransportTLS(*config) && plain > 0 {
			return nil, fmt.Errorf("API server URLs: the credentials of kubeconfig %s are not sent to http URLs", c.Kubeconfig)
		}
		return config, nil
	}
	switch plain {
	case 0:
		return inCluster()
	case len(servers):
		return &rest.Config{}, nil
	}
	return nil, errors.New("API server URLs: http and https cannot be mixed, since credentials are sent only to https")
}

// fromKubeconfig reads one file, without merging it with others.
func fromKubeconfig(path string) (*rest.Config, error) {
	content, err := input.ReadFile(context.Background(), path, input.MaxManifest)
	if err != nil {
		return nil, err
	}
	file, err := clientcmd.Load(content)
	if err != nil {
		return nil, err
	}
	for _, user := range file.AuthInfos {
		user.LocationOfOrigin = path // the base of relative paths
	}
	for _, cluster := range file.Clusters {
		cluster.LocationOfOrigin = path
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, err
	}
	return clientcmd.NewDefaultClientConfig(*file, &clientcmd.ConfigOverrides{}).ClientConfig()
}

func inCluster() (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, code.Errorf(code.KubeUnauthorized, "credentials of the cluster: %w (automountServiceAccountToken is false, for the pod or for its ServiceAccount; outside a pod, give a kubeconfig)", err)
	case err != nil:
		return nil, code.Errorf(code.KubeUnauthorized, "credentials of the cluster: %w (outside a pod, give a kubeconfig)", err)
	}
	if config.CAFile == "" {
		return nil, code.New(code.KubeUnauthorized, "credentials of the cluster: the ServiceAccount's ca.crt is missing or damaged")
	}
	return config, nil
}

// Source returns the source that spec names, with the names of agent. Node configs
// are matched against the node nodeName. A spec of a kind that is not in a cluster
// is an error: use spec.Source instead.
func (c *Client) Source(spec configresolve.Ref, agent Agent, nodeName string) (configresolve.Source, error) {
	switch spec.Kind {
	case "config-map":
		return c.ConfigMap(spec.Namespace, spec.Name), nil
	case "cilium-node-config":
		return nodeConfigs{c, spec.Namespace, spec.Name, nodeName, agent.NodeConfigs}.source(), nil
	case "node":
		return c.Node(spec.Name, agent.Prefix), nil
	}
	return configresolve.Source{}, fmt.Errorf("source %s does not live in a cluster", spec)
}
