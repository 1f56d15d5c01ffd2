package reins

// Verb names an action.
type Verb string

// The verbs of this version. The first six are every agent's by default.
const (
	VerbNavigate   Verb = "navigate"
	VerbSnapshot   Verb = "snapshot"
	VerbScreenshot Verb = "screenshot"
	VerbClick      Verb = "click"
	VerbFill       Verb = "fill"
	VerbPress      Verb = "press"

	VerbListTabs  Verb = "list_tabs"
	VerbOpenTab   Verb = "open_tab"
	VerbSelectTab Verb = "select_tab"
	VerbCloseTab  Verb = "close_tab"
	VerbType      Verb = "type"
	VerbPressKey  Verb = "press_key"

	VerbListArtifacts  Verb = "list_artifacts"
	VerbReadArtifact   Verb = "read_artifact"
	VerbDeleteArtifact Verb = "delete_artifact"
)

// verbInfo is what is decided once about a verb, for every door.
type verbInfo struct {
	verb   Verb
	class  Class
	agent  bool // a registration may permit it to agents
	needs  bool // needs a browser
	reads  bool // has no effect on the page
	decode func([]byte) (Action, error)
}

var verbs = []verbInfo{
	{VerbNavigate, ClassNavigation, true, true, false, decode[Navigate]},
	{VerbSnapshot, ClassAgentAction, true, true, true, decode[Snapshot]},
	{VerbScreenshot, ClassAgentAction, true, true, true, decode[Screenshot]},
	{VerbClick, ClassAgentAction, true, true, false, decode[Click]},
	{VerbFill, ClassAgentAction, true, true, false, decode[Fill]},
	{VerbPress, ClassAgentAction, true, true, false, decode[Press]},
	{VerbListTabs, ClassTab, true, true, true, decode[ListTabs]},
	{VerbOpenTab, ClassTab, true, true, false, decode[OpenTab]},
	{VerbSelectTab, ClassTab, true, true, false, decode[SelectTab]},
	{VerbCloseTab, ClassTab, true, true, false, decode[CloseTab]},
	{VerbType, ClassAgentAction, true, true, false, decode[Type]},
	{VerbPressKey, ClassAgentAction, true, true, false, decode[PressKey]},
	{VerbHover, ClassAgentAction, true, true, false, decode[Hover]},
	{VerbDrag, ClassAgentAction, true, true, false, decode[Drag]},
	{VerbScroll, ClassAgentAction, true, true, false, decode[Scroll]},
	{VerbWaitFor, ClassAgentAction, true, true, true, decode[WaitFor]},
	{VerbRead, ClassAgentAction, true, true, true, decode[Read]},
	{VerbConsole, ClassAgentAction, true, true, true, decode[Console]},
	{VerbNetwork, ClassAgentAction, true, true, true, decode[Network]},
	{VerbPDF, ClassAgentAction, true, true, true, decode[PDF]},
	{VerbPointer, ClassRawInput, false, true, false, decode[Pointer]},
	{VerbTouch, ClassRawInput, false, true, false, decode[Touch]},
	{VerbKey, ClassRawInput, false, true, false, decode[Key]},
	{VerbInsertText, ClassRawInput, false, true, false, decode[InsertText]},
	{VerbClipboard, ClassRawInput, false, true, false, decode[Clipboard]},
	{VerbSetViewport, ClassViewport, false, false, false, decode[SetViewport]},
	{VerbRefresh, ClassFrameStream, false, true, true, decode[Refresh]},
	{VerbInspect, ClassFrameStream, false, false, true, decode[Inspect]},
	{VerbRequestHuman, ClassControl, true, false, false, decode[RequestHuman]},
	{VerbControl, ClassControl, false, false, true, decode[GetControl]},
	{VerbRequestControl, ClassControl, false, false, false, decode[RequestControl]},
	{VerbRenewControl, ClassControl, false, false, false, decode[RenewControl]},
	{VerbReleaseControl, ClassControl, false, false, false, decode[ReleaseControl]},
	{VerbStopAgents, ClassControl, false, false, false, decode[StopAgents]},
	{VerbAnswerHuman, ClassControl, false, false, false, decode[AnswerHuman]},
	{VerbListArtifacts, ClassArtifact, false, false, true, decode[ListArtifacts]},
	{VerbReadArtifact, ClassArtifact, false, false, true, decode[ReadArtifact]},
	{VerbDeleteArtifact, ClassArtifact, false, false, false, decode[DeleteArtifact]},
}

func (v Verb) info() (verbInfo, bool) {
	for _, i := range verbs {
		if i.verb == v {
			return i, true
		}
	}
	return verbInfo{}, false
}

func (v Verb) agent() bool { i, ok := v.info(); return ok && i.agent }

// NeedsBrowser reports whether the verb starts a browser when none runs.
func (v Verb) NeedsBrowser() bool { i, _ := v.info(); return i.needs }

// ReadOnly reports whether the verb leaves the page as it is.
func (v Verb) ReadOnly() bool { i, _ := v.info(); return i.reads }

// Class is the classification that the gate sees when a participant of role
// does this: agent verbs of agents are always agent-action (GATE-1).
func (v Verb) Class(role Role) Class {
	i, _ := v.info()
	if role == RoleAgent && i.agent {
		return ClassAgentAction
	}
	return i.class
}

// DefaultVerbs are the six that a registration permits when it names none.
func DefaultVerbs() []Verb {
	return []Verb{VerbNavigate, VerbSnapshot, VerbScreenshot, VerbClick, VerbFill, VerbPress}
}

// Actions returns an empty action of every verb, in a fixed order: what doors
// describe them by.
func Actions() []Action {
	var out []Action
	for _, i := range verbs {
		if a, err := i.decode([]byte("{}")); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// AgentVerbs are all verbs that a registration may permit to agents.
func AgentVerbs() []Verb {
	var out []Verb
	for _, i := range verbs {
		if i.agent {
			out = append(out, i.verb)
		}
	}
	return out
}
