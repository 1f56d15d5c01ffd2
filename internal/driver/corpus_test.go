package driver

// corpus is a varied set of small pages for the comparison with the browser's
// accessibility tree.
var corpus = map[string]string{
	"buttons": `<button>Save</button><button><b>Bold</b> <i>move</i></button><button aria-label="Close dialog">x</button>
<button><img src="" alt="Search"></button><button title="Undo"></button><button><span aria-hidden=true>★</span> Favourite</button>
<input type=submit><input type=reset><input type=button value="Plain"><input type=image alt="Go" src=""><button disabled>Off</button>
<div role=button tabindex=0>Div button</div><span role="button" tabindex=0 aria-labelledby="n1 n2">nope</span><span id=n1>First</span> <span id=n2>second</span>
<button><svg width=10 height=10><title>Gear</title><circle r=4 /></svg></button><button aria-pressed=true>Mute</button>
<button aria-expanded=false aria-haspopup=menu>Menu</button><button>A<br>B</button><button>  lots   of
 space </button><summary>stray</summary><details><summary>More</summary>inside</details>`,
	"pseudo": `<style>.a::before{content:"Before "}.b::after{content:" after"}.c::before{content:"\e900"}.d::before{content:"alt" / "spoken"}</style>
<button class=a>x</button><a href=# class=b>y</a><button class="a b">z</button><button class=d>q</button>`,
	"links": `<a href=/x>Plain</a><a href=/y><img alt="Logo" src=""></a><a href=/z aria-label="Named">text</a><a href=/w title="Tip"></a>
<a>No link</a><a href=/v><span>One</span><div>Two</div></a><a href=/u><h2>Heading in link</h2><p>Body</p></a>
<map name=m><area href=/1 shape=rect coords="0,0,10,10" alt="Area one"><area href=/2 shape=circle coords="20,20,5" alt="Area two"></map>
<img usemap=#m src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7" width=40 height=40 alt="Map">`,
	"fields": `<label>Wrapped <input></label><label for=a>For</label><input id=a><input aria-label="Aria"><input placeholder="Holder"><input title="Titled">
<input title="T" placeholder="P"><label>Type <select><option>One<option selected>Two</select></label><textarea aria-labelledby=l></textarea><span id=l>Notes</span>
<label>Day <input type=date></label><label>Hour <input type=time></label><label>Mail <input type=email></label><label>Find <input type=search></label>
<label>Phone <input type=tel></label><label>Secret <input type=password></label><label>Count <input type=number></label><label>Level <input type=range></label>
<label>Ink <input type=color></label><label><input type=checkbox> Agree</label><input type=checkbox id=c><label for=c>Other <b>bold</b></label>
<fieldset><legend>Size</legend><label><input type=radio name=s> S</label><label><input type=radio name=s> L</label></fieldset>
<label for=two>One</label><label for=two>Two</label><input id=two><input list=dl aria-label="Combo"><datalist id=dl><option>x</datalist>
<label>Nested <input value=5> items</label><label>Flash <input type=checkbox> the screen <input value=3 aria-label=times> times</label>
<select multiple aria-label="Many"><option>a<option>b</select><select aria-label="Grouped"><optgroup label="G"><option>g1</optgroup></select>`,
	"hidden": `<button style="display:none">no</button><button style="visibility:hidden">no</button><button hidden>no</button><div aria-hidden=true><button>no</button></div>
<div inert><button>no</button></div><div style="visibility:hidden"><button style="visibility:visible">yes</button></div><button style="opacity:0">see through</button>
<details><button>closed</button></details><details open><button>opened</button></details><div style="content-visibility:hidden"><button>no</button></div>
<button style="position:absolute;left:-9999px">off screen</button><span style="display:contents"><button>contents</button></span>
<button>shown<span style="display:none"> hidden part</span><span style="visibility:hidden"> invisible</span></button>
<button aria-labelledby=hid>x</button><span id=hid hidden>Hidden label</span>`,
	"aria": `<div role=checkbox aria-checked=true tabindex=0>Check</div><div role=switch aria-checked=false tabindex=0>Switch</div>
<div role=radiogroup aria-label=G><div role=radio aria-checked=true tabindex=0>R1</div><div role=radio tabindex=-1>R2</div></div>
<div role=tablist><div role=tab aria-selected=true tabindex=0>Tab 1</div><div role=tab>Tab 2</div></div>
<ul role=menu><li role=menuitem tabindex=-1>Cut</li><li role=menuitemcheckbox aria-checked=true>Wrap</li><li role=menuitemradio>Left</li></ul>
<div role=slider aria-valuenow=3 aria-valuemin=0 aria-valuemax=9 aria-label=Vol tabindex=0></div><div role=spinbutton aria-valuenow=3 aria-label=Num tabindex=0></div>
<div role=listbox aria-label=L tabindex=0><div role=option aria-selected=true>O1</div><div role=option>O2</div></div>
<div role=combobox aria-label=C aria-expanded=false tabindex=0>Pick</div><div role=textbox contenteditable aria-label=T>text</div><div role=searchbox contenteditable aria-label=S></div>
<div role=tree aria-label=Tr><div role=treeitem tabindex=0>Leaf</div></div><div role=link tabindex=0>Div link</div><button role=presentation>Still button</button>
<a href=# role=button>Link button</a><button role="bogus link">Second role</button><div role=grid aria-label=Gr><div role=row><div role=gridcell tabindex=0>Cell</div></div></div>`,
	"names": `<button aria-labelledby="b1 s1" id=b1 aria-label=Own>x</button><span id=s1>suffix</span><button aria-labelledby=gone>fallback</button>
<button aria-label="  "  >blank label</button><button><input value=inner aria-label=ignored> tail</button><button><img alt=""><span>only text</span></button>
<button><span role=img aria-label=Star></span> rated</button><a href=#><span>in</span>line <b>join</b>ed</a><button><div>block</div><div>blocks</div></button>
<button><ul><li>one<li>two</ul></button><button aria-labelledby=lb>x</button><div id=lb>Label with <input value=value> inside</div>
<button>a<img title=tip src=x>b</button><button><span aria-labelledby=s1></span></button><button><table><tr><td>cell</table></button>`,
	"shadow": `<div id=h><span slot=s>Slotted</span>default</div><script>const r=h.attachShadow({mode:'open'});r.innerHTML='<button><slot name=s></slot> shadow</button><a href=#><slot></slot></a><label>In <input></label>'</script>
<x-card>light</x-card><script>customElements.define('x-card',class extends HTMLElement{constructor(){super();this.attachShadow({mode:'closed'}).innerHTML='<button>closed <slot></slot></button>'}})</script>`,
	"table": `<table><tr><th>A<th>B<tr><td><button>In cell</button><td><a href=#>Link</a></table><table role=grid><tr><td tabindex=0>g1<td>g2</table>
<table><tr><td><button>layout</button></table>`,
	"owns": `<div role=listbox aria-label=Owner aria-owns="x1 x2" tabindex=0></div><div role=option id=x1>Owned 1</div><div role=option id=x2>Owned 2</div>`,
	"labels": `<label id=q>Quantity <span style="display:none">(hidden)</span><select><option>1</select></label><label>Amount <a href=#>help</a> <input></label>
<label aria-label="Label's own">Visible <input></label><label><span>Deep <i>er</i></span><div><input type=checkbox></div></label>
<label for=m1>For meter</label><meter id=m1 value=3 max=9></meter><label>Bar <progress value=1 max=2></progress></label><label>Out <output>5</output></label>
<label for=bt>Label of a button</label><button id=bt>Own text</button><input aria-labelledby=self aria-label="Self" id=self><input aria-describedby=q name=n>`,
	"selects": `<label>Plain <select><option value=1>A<option disabled>B</select></label><select aria-label=S><option label="Label">text</option><option>  spaced   out </option></select>
<select size=3 aria-label=Box><option selected>x<option>y</select>`,
	"media": `<video controls aria-label="Film"></video><img src=x alt=Photo><img src=x alt=""><img src=x><figure><img src=x alt=Inner><figcaption>Caption</figcaption></figure>
<svg role=img aria-label=Chart width=9 height=9></svg><svg width=9 height=9><a href=#><text y=9>svg link</text></a></svg><button><svg width=9 height=9 aria-label=Icon role=img></svg></button>
<canvas width=9 height=9></canvas><object data=x></object><button><picture><img src=x alt=Pic></picture></button>`,
	"transform": `<style>.u{text-transform:uppercase}.p{white-space:pre}</style><button>a&nbsp;b</button><button class=p>c   d</button><button>soft&shy;hyphen</button><button>zero&#8203;width</button>
<button><p>para</p>tail</button><button>g <br> h</button>`,
	"editing": `<div contenteditable aria-label=Ed>some <b>text</b></div><div contenteditable=false>no</div><div role=textbox aria-multiline=true contenteditable=plaintext-only aria-label=Multi>x</div>`,
	"embedded": `<label><input type=checkbox> Flash <select aria-label=n><option>1<option selected>3</select> times</label>
<label><input type=checkbox> Flash <span role=combobox tabindex=0 aria-label=n>3</span> times</label><label><input type=checkbox> Flash <input role=combobox value=3 aria-label=n> times</label>
<label><input type=checkbox> Flash <span role=listbox aria-label=n><span role=option>1</span><span role=option aria-selected=true>3</span></span> times</label>
<label><input type=checkbox> Flash <span role=combobox tabindex=0><span role=listbox><span role=option>1</span><span role=option aria-selected=true>3</span></span></span> times</label>
<label><input type=checkbox> Flash <span role=menu><span role=menuitem>1</span></span> times</label><label><input type=checkbox> Flash <span role=slider aria-valuenow=3></span> times</label>
<input value=peanuts id=peanuts><img aria-labelledby=peanuts src=x><button aria-labelledby="own peanuts" id=own>Own</button>
<ul role=tree><li role=treeitem tabindex=0>Fruit<ul role=group><li role=treeitem tabindex=-1>Apple</ul></ul><div role=menu><div role=menuitem tabindex=0>File<div role=menu><div role=menuitem tabindex=-1>Open</div></div></div></div>`,
	"unseen": `<h2>seen <span style="visibility:hidden">unseen <b style="visibility:visible">seen again</b></span></h2><button>a<span><span> </span></span>b</button>
<button style="visibility:hidden">no <b style="visibility:visible">yes</b></button><button><span role=presentation title=no>text</span></button><button><img alt="" title=no role=presentation src=x>text</button>
<style>.l::before{content:"foo"}.l::after{content:"baz"}</style><label class=l><input type=checkbox></label>`,
	"references": `<section aria-labelledby=gone>no region</section><main><aside>in main</aside></main><section><aside>in a section</aside></section><div role="region group">second</div>
<a href=# aria-labeledby=mis>x</a><b id=mis>misspelled</b><div role=textbox contenteditable aria-placeholder=Placeholder></div><span id=q2>q <button aria-labelledby=q2 id=q3>x</button></span>
<h3><a href=# aria-labelledby=pic>link1</a> <a href=#>link2 <img id=pic alt=image src=x></a></h3>`,
	"owned": `<button aria-owns=play><span aria-hidden=true><span id=play>Play</span></span></button><h3><span aria-hidden=true aria-owns=refl>not</span><b id=refl>reflection</b></h3>
<h3><span aria-owns=car>The dog and the </span></h3><h4>Speeding <b id=car>car</b></h4><a href=# aria-owns=hid>Shown</a><div hidden><span id=hid> not</span></div>`,
	"slots": `<button aria-labelledby=s1></button><label id=s1><span id=h1>slotted</span></label><script>h1.attachShadow({mode:'open'}).innerHTML='foo <slot aria-label=label></slot> bar'</script>`,
	"drawn": `<svg width=90 height=90><a href=# xlink:title="Title"><circle r=4></circle></a><rect aria-label=Bar width=9 height=9></rect><g aria-label=Group><circle r=3><title>Dot</title></circle></g></svg>`,
	"open":  `<button popovertarget=pop>Popover</button><div id=pop popover>x</div><textarea aria-label=Area></textarea><div role=switch aria-checked=mixed tabindex=0>Mixed</div>`,
}
