// Package reinstest is the contract of the ports of package reins as tests. It
// takes a factory of runtimes and holds what that makes against what the ports
// promise, through the ports only: the local host and the client of the HTTP API
// pass the same suite, and so does any other runtime.
//
//	func TestContract(t *testing.T) {
//		reinstest.Run(t, func(t *testing.T, s reinstest.Setup) reinstest.Subject { … })
//	}
//
// Each test asks for a runtime of its own, with hooks by which it watches and
// holds up what the runtime does, and with limits. It needs no page: whatever
// the verbs do, a driver that answers them is enough. Tests wait for what must
// happen and never for time to pass, except for expiry.
//
// It is for tests only.
package reinstest
