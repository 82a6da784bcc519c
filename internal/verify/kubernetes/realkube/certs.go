// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package realkube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	PEM  []byte // the authority's certificate
}

// NewAuthority makes an authority that no client trusts yet.
func NewAuthority(name string) (*Authority, error) {
	template := template(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	key, der, err := sign(template, template, nil)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make certificate authority %s: %w", name, err)
	}
	return &Authority{cert, key, block("CERTIFICATE", der)}, nil
}

// Server makes a certificate for a server with the given hosts, valid until the given time;
// keyPEM is its key.
func (a *Authority) Server(until time.Time, hosts ...string) (certPEM, keyPEM []byte, err error) {
	template := template("kube-apiserver")
	template.NotAfter = until
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, der, err := sign(template, a.cert, a.key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	return block("CERTIFICATE", der), block("EC PRIVATE KEY", keyDER), err
}

func template(name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(48 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// sign makes a key and its certificate, which is self-signed if there is no signer.
func sign(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	return key, der, nil
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// WriteCredentials writes into dir the files that an API server with the given hosts needs:
// ca.crt, tls.crt, tls.key, sa.key, and tokens.csv with the users.
func WriteCredentials(dir string, users []User, hosts ...string) (caPEM []byte, err error) {
	ca, err := NewAuthority("realkube")
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(24 * time.Hour)
	cert, key, err := ca.Server(until, hosts...)
	if err != nil {
		return nil, err
	}
	_, accountKey, err := ca.Server(until) // only the key is needed
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		"ca.crt": ca.PEM, "tls.crt": cert, "tls.key": key, "sa.key": accountKey, "tokens.csv": tokens(users),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return ca.PEM, nil
}
