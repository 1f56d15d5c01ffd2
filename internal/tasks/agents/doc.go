// Package agents holds one scripted agent for each task of the benchmark.
//
// An agent is what a model would be, without the model: it is told in words
// what to do, it calls tools ([Tools]), it reads the texts that come back, and
// it finds what it needs by role, name, state and nesting in the outline of the
// page. It never sees an element ID, a class, a script or the page's source,
// and it decides the same way every time.
//
// So a task that its agent cannot do is a fault of the tools or of what they
// say, not of cleverness. Agents therefore do not work around anything: no
// second try where one should do, no pause where a tool should wait. Only where
// a task itself is about waiting do they look again ([Agent.Until]), as a model
// would.
//
// [All] lists the tasks. To run one, make an [Agent] with [New], call the
// task's Run with it, and ask [Agent.Err]: the first thing that went wrong
// stops everything after it.
package agents
