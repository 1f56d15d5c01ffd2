module github.com/reins-browser/reins/examples/agents/langchaingo

go 1.26.0

require github.com/reins-browser/reins v0.0.0

require (
	github.com/dlclark/regexp2 v1.10.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/pkoukk/tiktoken-go v0.1.6 // indirect
	github.com/tmc/langchaingo v0.1.14
)

replace github.com/reins-browser/reins => ../../..
