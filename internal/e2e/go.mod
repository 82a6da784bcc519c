module github.com/slipway-dev/slipway/internal/e2e

go 1.26.0

replace (
	github.com/slipway-dev/slipway => ../..
	github.com/slipway-dev/slipway/internal/realkube => ../realkube
)

require (
	github.com/slipway-dev/slipway v0.0.0-00010101000000-000000000000
	github.com/slipway-dev/slipway/internal/realkube v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require (
	go.yaml.in/yaml/v3 v3.0.5
	golang.org/x/sys v0.49.0 // indirect
)
