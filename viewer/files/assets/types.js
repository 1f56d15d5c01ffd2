// The words that the page and the server share, as JSDoc types. They mirror the
// JSON forms of package reins; see docs/viewer.md.

/**
 * @typedef {{pid: number, name: string, memory: number}} CellProcess
 * @typedef {{host: string, port: number, since: string, up: number, down: number}} CellConnection
 * @typedef {{name: string, size: number, modified: string}} CellFile
 * @typedef {{incarnation: number, processes: CellProcess[]|null, connections: CellConnection[]|null, files: CellFile[]|null, left?: number}} Inspection
 * @typedef {{incarnation: number, stream: number, sequence: number}} FrameID
 * @typedef {{id: FrameID, tab: string, viewport: number, width: number, height: number, captured: string}} Frame
 * @typedef {{tab: string, url: string, title: string, opener?: string, selected?: boolean, loading?: boolean, crashed?: boolean}} Tab
 * @typedef {{revision: number, width: number, height: number, scale: number}} Viewport
 * @typedef {{request: string, actor: string, reason: string, since: string, expires: string}} HumanRequest
 * @typedef {"agent"|"agent-active"|"human-pending"|"human"} ControlState
 * @typedef {"available"|"degraded"|"disconnected"|"destroyed"} Availability
 * @typedef {object} Control
 * @property {ControlState} state
 * @property {number} active_agents
 * @property {string} [actor]
 * @property {string} [since]
 * @property {string} [expires]
 * @property {boolean} [mine]
 * @property {Availability} availability
 * @property {HumanRequest[]} [requests]
 * @typedef {"agent"|"human"} Role
 * @typedef {{actor: string, role: Role, since: string, watching?: boolean, mine?: boolean}} Participant
 * @typedef {{tab: string, x: number, y: number, actor: string, role: Role}} Cursor
 * @typedef {{x: number, y: number, width: number, height: number}} Box
 * @typedef {{role: string, name: string}} Target
 * @typedef {object} Activity
 * @property {string} operation
 * @property {string} actor
 * @property {Role} role
 * @property {string} verb
 * @property {string} [tab]
 * @property {Target} [target]
 * @property {Box} [box]
 * @property {string} [url]
 * @property {string} started
 * @property {string} [ended]
 * @property {"completed"|"failed"|"cancelled"|"unknown"|""} [outcome]
 * @property {string} [code]
 * @property {string} [detail]
 * @typedef {{kind: string, message: string, default?: string}} Dialog
 * @typedef {"starting"|"running"|"stopping"|"stopped"|"destroying"|"destroyed"|"error"} Life
 * @typedef {object} ViewState
 * @property {number} incarnation
 * @property {Life} state
 * @property {Tab[]|null} tabs
 * @property {string} selected
 * @property {Viewport} viewport
 * @property {Control} control
 * @property {Participant[]|null} participants
 * @property {Cursor} [cursor]
 * @property {Activity} [operation]
 * @property {Dialog} [dialog]
 * @property {Activity[]|null} activities
 * @typedef {{artifact: string, kind: string, media_type: string, size: number, created: string, name: string}} Artifact
 * @typedef {object} Result
 * @property {Control} [control]
 * @property {Viewport} [viewport]
 * @property {string} [clipboard]
 * @property {Inspection} [inspection]
 * @property {Artifact[]} [artifacts]
 * @property {{markdown: string, left?: number, cursor?: string}} [reading]
 * @property {Tab} [tab]
 * @property {string[]} [notes]
 * @typedef {{code: string, message: string, retryable?: boolean, recovery?: string, details?: Record<string, unknown>}} WireError
 * @typedef {{project: string, resource: string}} ResourceKey
 * @typedef {{overall: string}} Readiness
 * @typedef {object} ResourceInfo
 * @property {ResourceKey} key
 * @property {string} created
 * @property {number} incarnation
 * @property {Life} state
 * @property {string} [started_at]
 * @property {Readiness} readiness
 * @property {number} participants
 * @property {Control} control
 * @typedef {{actor: string, projects: string[]|null, resource: ResourceKey|null, expires: string}} SessionInfo
 * @typedef {{lease: string, expires: string, now: string}} LeaseState
 * @typedef {{verb: string} & Record<string, unknown>} Action
 */

export {};
