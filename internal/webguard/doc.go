// Package webguard is what every HTTP door asks of a request before anything
// else: does it come from where it may, and is it of a size that is taken
// (MCP-7).
//
// A web page that a person has open can make that person's browser talk to a
// server on loopback: by a name that was rebound to 127.0.0.1, by a foreign
// origin, or by a form that no preflight holds back. So a [Guard] refuses
//
//   - a Host that is no name of this server: loopback, the very address at which
//     the connection arrived, and the names that [Options.Hosts] adds are;
//   - an Origin that is neither the Host's own nor listed in [Options.Origins],
//     "null" included, and requests that a browser marks as another site's;
//   - the three content types that a form can send, and a body without one;
//   - a body above [Options.MaxBody].
//
// The guard looks at nothing else and knows nobody: who asks is for the door's
// authentication, which comes after. It never answers with an allow header, so
// that a preflight of a foreign page fails.
//
// A Guard is immutable and safe for concurrent use. [CheckListen] is the other
// half of the rule: a server without authentication stays on loopback.
package webguard
