module github.com/slipway-dev/slipway/internal/realkube

go 1.26.0

replace github.com/slipway-dev/slipway => ../..

require github.com/stretchr/testify v1.12.1

require go.yaml.in/yaml/v3 v3.0.5 // indirect
