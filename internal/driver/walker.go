package driver

import _ "embed"

// The parts of the script that works inside of pages; see js/base.js.
var (
	//go:embed js/base.js
	scriptBase string
	//go:embed js/role.js
	scriptRole string
	//go:embed js/name.js
	scriptName string
	//go:embed js/counter.js
	scriptCounter string
	//go:embed js/state.js
	scriptState string
	//go:embed js/kinds.js
	scriptKinds string
	//go:embed js/walk.js
	scriptWalk string
	//go:embed js/slice.js
	scriptSlice string
	//go:embed js/frames.js
	scriptFrames string
	//go:embed js/look.js
	scriptLook string
	//go:embed js/special.js
	scriptSpecial string
	//go:embed js/act.js
	scriptAct string
	//go:embed js/control.js
	scriptControl string
	//go:embed js/read.js
	scriptRead string
	//go:embed js/wait.js
	scriptWait string
	//go:embed js/move.js
	scriptMove string
	//go:embed js/secret.js
	scriptSecret string
	//go:embed js/view.js
	scriptView string
	//go:embed js/world.js
	scriptWorld string
)

// walkerSource runs once in the isolated world of every document, before the
// page's first script, and defines globalThis.reins there. Running it again
// changes nothing.
var walkerSource = "globalThis.reins || (() => {\n" + scriptBase + scriptRole + scriptName + scriptCounter + scriptState + scriptKinds + scriptWalk + scriptSlice + scriptFrames + scriptLook + scriptSpecial +
	scriptAct + scriptControl + scriptRead + scriptWait + scriptMove + scriptSecret + scriptView + scriptWorld + "})();"

// worldName is the isolated world that walkerSource lives in.
const worldName = "reins"
