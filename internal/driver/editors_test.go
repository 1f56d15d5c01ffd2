package driver

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/reins-browser/reins"
)

// modules lets a page import packages by their names.
const modules = `<script type=importmap>{"imports":{"prosemirror-view":"/m/prosemirror-view/dist/index.js","prosemirror-state":"/m/prosemirror-state/dist/index.js","prosemirror-model":"/m/prosemirror-model/dist/index.js","prosemirror-transform":"/m/prosemirror-transform/dist/index.js",
"prosemirror-schema-basic":"/m/prosemirror-schema-basic/dist/index.js","prosemirror-keymap":"/m/prosemirror-keymap/dist/index.js","prosemirror-commands":"/m/prosemirror-commands/dist/index.js","orderedmap":"/m/orderedmap/dist/index.js","@codemirror/view":"/m/@codemirror/view/dist/index.js","@codemirror/state":"/m/@codemirror/state/dist/index.js","style-mod":"/m/style-mod/src/style-mod.js","w3c-keyname":"/m/w3c-keyname/index.js","crelt":"/m/crelt/index.js","@marijn/find-cluster-break":"/m/@marijn/find-cluster-break/src/index.js"}}</script>`

// editors are widgets as they come from npm: each page tells by held() what its
// own model holds, which is what it would save (ACT-3).
var editors = []struct {
	name, html string
	find       string // part of the line with the ref
	fills      []string
}{
	{"prosemirror", modules + `<div id=ed></div><script type=module>import {EditorState} from 'prosemirror-state';import {EditorView} from 'prosemirror-view';import {schema} from 'prosemirror-schema-basic';import {keymap} from 'prosemirror-keymap';import {baseKeymap} from 'prosemirror-commands';
const view=new EditorView(ed,{state:EditorState.create({plugins:[keymap(baseKeymap)],doc:schema.node('doc',null,[schema.node('paragraph',null,[schema.text('First draft')])])}),attributes:{'aria-label':'Post',role:'textbox'}});window.held=()=>view.state.doc.textBetween(0,view.state.doc.content.size,'\n')</script>`,
		`"Post"`, []string{"One line", "Other\nlines", ""}},
	{"codemirror 6", modules + `<div id=ed></div><script type=module>import {EditorState} from '@codemirror/state';import {EditorView} from '@codemirror/view';
const view=new EditorView({parent:ed,state:EditorState.create({doc:'old text',extensions:[EditorView.contentAttributes.of({'aria-label':'Post'})]})});window.held=()=>view.state.doc.toString()</script>`,
		`"Post"`, []string{"let a = 1;", "if (a) {\n  b();\n}", ""}},
	{"codemirror 5", `<link rel=stylesheet href=/m/codemirror/lib/codemirror.css><textarea id=t>old
text</textarea><script src=/m/codemirror/lib/codemirror.js></script><script>const cm=CodeMirror.fromTextArea(t,{lineNumbers:true});cm.getInputField().setAttribute('aria-label','Post');window.held=()=>cm.getValue()</script>`,
		`"Post"`, []string{"let a = 1;", "if (a) {\n  b();\n}"}},
	{"quill", `<link rel=stylesheet href=/m/quill/dist/quill.snow.css><div id=ed><p>Old <b>bold</b></p></div><script src=/m/quill/dist/quill.js></script><script>const q=new Quill('#ed',{theme:'snow',modules:{toolbar:false}});q.root.setAttribute('aria-label','Post');q.root.setAttribute('role','textbox');window.held=()=>q.getText().replace(/\n$/,'')</script>`,
		`"Post"`, []string{"One line", "Other\nlines", ""}},
	{"monaco", `<div id=ed style="width:600px;height:200px"></div><script src=/m/monaco-editor/min/vs/loader.js></script><script>require.config({paths:{vs:'/m/monaco-editor/min/vs'}});require(['vs/editor/editor.main'],()=>{const e=monaco.editor.create(ed,{value:'old\ntext',language:'plaintext',ariaLabel:'Post',autoIndent:'none'});window.held=()=>e.getValue()})</script>`,
		`"Post`, []string{"let a = 1;", "first\nsecond"}},
	{"react input", `<div id=root></div><script src=/m/react/umd/react.production.min.js></script><script src=/m/react-dom/umd/react-dom.production.min.js></script><script>
const e=React.createElement;function App(){const[v,set]=React.useState('old');window.held=()=>v;return e('input',{'aria-label':'Post',value:v,onChange:x=>set(x.target.value)})}ReactDOM.createRoot(root).render(e(App))</script>`,
		`"Post"`, []string{"ann@a.test", ""}},
	{"react textarea in capitals", `<div id=root></div><script src=/m/react/umd/react.production.min.js></script><script src=/m/react-dom/umd/react-dom.production.min.js></script><script>
const e=React.createElement;function App(){const[v,set]=React.useState('OLD');window.held=()=>v.toLowerCase();return e('textarea',{'aria-label':'Post',value:v,onChange:x=>set(x.target.value.toUpperCase())})}ReactDOM.createRoot(root).render(e(App))</script>`,
		`"Post"`, []string{"quiet", "more\nlines"}},
	{"react select", `<div id=root></div><script src=/m/react/umd/react.production.min.js></script><script src=/m/react-dom/umd/react-dom.production.min.js></script><script>
const e=React.createElement;function App(){const[v,set]=React.useState('a');window.held=()=>v;return e('select',{'aria-label':'Post',value:v,onChange:x=>set(x.target.value)},e('option',{value:'a'},'a'),e('option',{value:'b'},'b'))}ReactDOM.createRoot(root).render(e(App))</script>`,
		`combobox "Post"`, []string{"b", "a"}},
	{"vue model", `<div id=app><input aria-label=Post v-model.trim="v"></div><script src=/m/vue/dist/vue.global.prod.js></script><script>const vm=Vue.createApp({data:()=>({v:'old'})}).mount('#app');window.held=()=>vm.v</script>`,
		`"Post"`, []string{"ann@a.test", ""}},
	{"vue number", `<div id=app><input aria-label=Post type=number v-model.number="v"></div><script src=/m/vue/dist/vue.global.prod.js></script><script>const vm=Vue.createApp({data:()=>({v:1})}).mount('#app');window.held=()=>String(vm.v)</script>`,
		`"Post"`, []string{"42", "-2"}},
	{"masked phone", `<input id=t aria-label=Post><script src=/m/imask/dist/imask.js></script><script>const m=IMask(t,{mask:'+{7}(000)000-00-00'});window.held=()=>m.value.replace(/\D/g,'')</script>`,
		`"Post"`, []string{"79161234567", "79990000000"}},
	{"masked amount", `<input id=t aria-label=Post><script src=/m/imask/dist/imask.js></script><script>const m=IMask(t,{mask:Number,thousandsSeparator:',',radix:'.'});window.held=()=>m.unmaskedValue</script>`,
		`"Post"`, []string{"1234567", "12"}},
}

// TestEditors fills them. REINS_EDITORS is a folder that scripts/editors has
// prepared; without it there is nothing to fill, and the test says so.
func TestEditors(t *testing.T) {
	root := os.Getenv("REINS_EDITORS")
	if root == "" {
		t.Log("nothing filled: REINS_EDITORS names no folder that scripts/editors prepared")
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/m/", http.StripPrefix("/m/", http.FileServer(http.Dir(root+"/node_modules"))))
	for i, c := range editors {
		mux.HandleFunc(fmt.Sprint("/", i), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!doctype html><html lang=en><title>", c.name, "</title>", c.html)
		})
	}
	s := serve(t, mux)
	eachEngine(t, func(t *testing.T, engine reins.Engine) {
		b := newBrowser(t, engine)
		for i, c := range editors {
			t.Run(c.name, func(t *testing.T) {
				b.act(t, reins.Navigate{URL: fmt.Sprint(s.URL, "/", i), Wait: "load"})
				waitFor(t, c.name+" is there", func() bool {
					return b.pageScript(t, b.tabNow(), "typeof held") == "function" && strings.Contains(b.see(t), c.find)
				})
				for _, value := range c.fills {
					r, err := b.try(reins.Fill{Ref: refTo(t, b.see(t), c.find), Value: textOf(value)})
					if err != nil {
						t.Errorf("%q: %v", value, err)
						continue
					}
					if got := b.pageScript(t, b.tabNow(), "held()"); got != value {
						t.Errorf("it holds %q after a fill with %q, which told %+v", got, value, r.Result.Changes)
					}
				}
			})
		}
	})
}
