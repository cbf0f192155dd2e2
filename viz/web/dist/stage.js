export default({shared})=>{let{_1l:T,_3:v}=shared;var g="minmax(0, 1fr)",b=`
  .decode-player { --small: 0.85rem; --size: 1.6rem; padding-top: 0 !important; }
  .decode-player .text { padding-top: 0.9rem; }
  .decode-player .target { margin-top: 2.6rem !important; }
  .decode-player .line { line-height: 1.6; }
  :is(.decode-player .line, .texts p) { text-wrap: balance; } /* No piece stands alone in a line of its own. */
  .decode-player .below { grid-template-columns: ${g} minmax(17rem, 0.55fr) !important; gap: 2rem !important; margin-top: 0.5rem; }
  .decode-player .candidate { height: calc(1.7 * var(--small)); }
  .decode-player .candidate:nth-last-child(-n + 3):not(.chosen) { display: none; }
  .decode-player .reading { margin-top: 0.1rem; min-height: 0; }
  .decode-player .player { margin-top: 0.3rem; }
  .decode-player .where { display: none; }
  .decode-player .target .piece:first-child, .special { font-size: max(0.7em, 12px); }
  .line[data-size="large"] { font-size: 1.4rem; line-height: 1.35; }
  .decode-player .frame { height: max(8rem, calc(var(--picture, 350px) - 9rem)); }
  /* Tiles take the height beside the picture, until they are twice as high as they are wide; under them a card may stand. */
  .overview { container-type: inline-size; }
  .overview .grid:not(.ordered) .tile {
    --wide: calc((100cqw - 1.6rem) / var(--heads) - 7px);
    aspect-ratio: auto;
    height: clamp(var(--wide), (var(--tiles, var(--picture, 350px)) - 1.5rem) / var(--layers) - 7px, 2 * var(--wide));
  }
  .sentence { text-align: center; padding: 1rem 0; }
  .sentence .words { justify-content: center; font-size: 2rem !important; }
  .sentence .between { height: 7rem; }
  .texts { padding-top: 0; }
  @media (min-aspect-ratio: 1) { .texts { grid-template-columns: auto auto; } } /* The longer text has more of the line. */
  .texts h3 { min-height: 0; }
  .texts .hint { display: none; }
  .links .scroll { max-width: none; }
  .links :is(.heading, .numbers text) { font-size: inherit; }
  .links .scroll > svg { height: var(--picture, 350px); }
  .beam-tree .scroll { height: var(--picture, 350px); overflow-y: hidden; }
  .value { font-size: 12px; }
  .version { grid-template-columns: 6rem ${g} repeat(3, 6.2rem) !important; padding: 0.2rem 0.6rem !important; }
  .masks .readout { display: none; }
  @media (min-aspect-ratio: 1) { .masks .panels { grid-template-columns: repeat(4, ${g}) !important; } }
  .snapshots .pictures { grid-template-columns: minmax(0, 0.7fr) ${g} !important; }
  .snapshots .tick .name { font-size: 12px; }
  .snapshots .written { height: auto; font-size: 1.25rem; margin: 0; }
  .snapshots .track { padding-top: 1.4rem; padding-bottom: 1.2rem; }
  .snapshots .play { margin-top: 0.8rem; }
  .snapshots .frame { grid-template-rows: 4.8rem max(5rem, calc(var(--picture, 350px) - 6.6rem)); }
  .snapshots .grid { max-width: max(9rem, calc(var(--picture, 350px) - 2rem)); }
  .snapshots .reading { display: none; }
  .pipeline { display: flex; flex-wrap: wrap; gap: 0.3rem 2rem; align-items: center; }
  .pipeline .lead { flex: 1 1 17rem; position: relative; top: 0; container-type: inline-size; }
  .pipeline .words { display: block; max-width: none; min-height: 0; }
  .pipeline .moves { display: none; }
  .pipeline .table {
    flex: 2.6 1 30rem;
    min-width: 0;
    max-width: none;
    column-gap: 0.5rem;
    grid-template-columns: minmax(3.6rem, 1.1fr) repeat(2, minmax(0, 1.5fr)) repeat(3, 2.6rem) minmax(3.8rem, 1fr) minmax(2.8rem, 1.5fr);
    grid-template-rows: auto 1.6rem repeat(var(--keys), max(1.2rem, calc((var(--picture, 350px) - 5.2rem) / var(--keys)))) 2rem;
  }
  /* Where the words stand above the table, as those of two beside each other, the equation and the numbers say it. */
  @container (min-width: 24rem) { .says { display: none; } }
  .pipeline .heading { white-space: normal; line-height: 1.1; }
  /* The place of what comes in later steps: where it all leads is seen from the first. */
  .pipeline .later:is(.heading, .cell) { visibility: visible; }
  .pipeline .later.cell { color: transparent; background: color-mix(in srgb, var(--st-text-color) 5%, transparent); clip-path: inset(14% 0); }
  .pipeline .later.cell > * { visibility: hidden; }
`,M=`
  select { appearance: none; border: 0 !important; pointer-events: none; }
  .forbid, .wide, .speed { display: none !important; }
`;var u=e=>`${v}:has(${e})`,w={sentence:[".st-key-sentence",".sentence > .source"],translation:[".st-key-translation",".st-key-again",".versions .after",".sentence > :is(.target, .says, svg)"],heads:[u(".st-key-overview"),u(".st-key-changes")],picture:[u(".st-key-head-picture"),u(".st-key-compared"),".st-key-picture",".st-key-fault-pair"],"next token":[".candidates",".text [data-state=predicted]",".legend .predicted"],attention:[".text > svg"],matrix:[".below > .matrix"],candidates:[".below > .candidates"],player:[".player",".where"],decoding:[".st-key-decode-player"],tree:[".st-key-tree"],best:[".st-key-best",".st-key-versions"],verdict:[".st-key-verdict",".st-key-fault-lead",`${u(".st-key-fault-lead")} ${v}`]},_=`
  .js-plotly-plot .annotation-text { visibility: hidden !important; }
  .js-plotly-plot .heatmaplayer { filter: grayscale(1); }`,z=`
  :root:has(.st-key-tree) :is(.st-key-decode-player, .st-key-best),
  .slide:is(:has(> [data-role=tree]), :has(:not([hidden]) > [data-role=tree])) [data-role=decoding] { display: none !important; }
  :root:has(.st-key-tree) .st-key-sentence { display: block !important; }`,W=`
  :root:has(.st-key-sentence-picture) :is(.st-key-sentence:not(:has(textarea)), .st-key-translation) { display: none !important; }
  .st-key-sentence-picture { display: flex !important; }`;function R(e,t,o){let n=f=>f.flatMap(x=>w[x]??[]).join(", "),a=t.includes("matrix")||t.includes("candidates")?".decode-player .below { grid-template-columns: minmax(0, 44rem) !important; justify-content: center; }":"",s=[...e,...t].includes("attention")?".text .source .piece { color: var(--st-text-color) !important; background: none !important; }":"",c=[...e,...t].includes("translation")?".sentence > .source button { color: inherit !important; background: none !important; }":"",i=o&&!t.includes("tree")?z:"",l=o&&["heads","picture"].every(f=>t.includes(f))?W:"",p=e.includes("broken or fixed")?_:"",d=`${o}${i}${l}${c}${s}${a}${p}${t.length?`:is(${n(t)}) { display: none !important; }`:""}`;if(!e.some(f=>w[f]))return d;let m=":is(span, b, svg, p, .piece)";return`${d}
    :is(${n(e)}):not(${m}) { position: relative; }
    :is(${n(e)}):not(${m}) * { visibility: hidden !important; }
    :is(${n(e)}):not(${m})::after {
      content: "?"; position: absolute; inset: 0; display: grid; place-items: center; border-radius: 0.6rem;
      font-size: 1.5rem; opacity: 0.75; background: color-mix(in srgb, currentColor 7%, transparent);
    }
    svg:is(${n(e)}) { visibility: hidden !important; }
    :is(${n(e)}):is(${m}):not(svg) {
      forced-color-adjust: none; color: transparent !important; -webkit-text-stroke: 0 !important; text-decoration: none !important;
      background: color-mix(in srgb, currentColor 0%, light-dark(#d9d8dd, #3a3845)) !important; border-radius: 0.2em;
    }
    :is(${n(e)}):is(${m}) * { visibility: hidden !important; }
    @media (forced-colors: active), (prefers-contrast: more) { :is(${n(e)}):not(${m})::after { outline: 2px dashed; outline-offset: -2px; opacity: 1; } }`}function*h(e){yield e;for(let t of e.querySelectorAll("*"))t.shadowRoot&&(yield*h(t.shadowRoot))}function G(e,t,o,n=b+M){let{CSSStyleSheet:a}=e.defaultView,r=e.covering??=new a,s=R(t,o,n);e.covered!==s&&r.replaceSync(s),e.covered=s;let c=[...h(e)].filter(i=>!i.adoptedStyleSheets.includes(r));for(let i of c)i.adoptedStyleSheets=[...i.adoptedStyleSheets,r];return c.length>0}var A=(e,t)=>e.every((o,n)=>n<2?o>=t[n]:o<=t[n]);function I(e){let{innerWidth:t,innerHeight:o}=e.defaultView,n=[...h(e)],a=({left:i,top:l,right:p,bottom:d})=>[i/t,l/o,Math.min(p/t,1),Math.min(d/o,1)],r=i=>n.flatMap(l=>[...l.querySelectorAll(i.join(", "))].filter(p=>p.checkVisibility())).map(l=>a(l.getBoundingClientRect())).filter(([l,p,d,m])=>d>l&&m>p).filter((l,p,d)=>!d.some((m,f)=>f!==p&&A(l,m)&&(f<p||!A(m,l)))),s=Object.entries(w).map(([i,l])=>[i,r(l)]),c=e.querySelector(".st-key-fault-pair")?{"broken or fixed":[]}:{};return{...Object.fromEntries(s.filter(([,i])=>i.length)),...c}}var P="tbody > tr, ol:not(.steps) > li, .version:not(.heading), .part.caption",q=2,U=22;function H(e){let t=new Map;for(let o of h(e))for(let n of o.querySelectorAll(P))n.checkVisibility()&&t.set(n.parentElement,[...t.get(n.parentElement)??[],n]);return[...t].filter(([,o])=>o.length>q)}function V(e,t){for(let a of t)a.classList.add("left-out"),a.style.display="none";let o=e.querySelectorAll(":scope > .left-out").length,n=e.querySelector(":scope > .more");if(!n){let r=({TBODY:["tr","td"],OL:["li"]}[e.tagName]??["p"]).map(s=>e.ownerDocument.createElement(s));r[1]&&(r[0].append(r[1]),r[1].colSpan=99),n=r[0],n.classList.add("more"),n.style.cssText="list-style: none; opacity: 0.75",e.append(n)}(n.firstElementChild??n).textContent=T("and {count} more",{count:o})}function F(e,t,o){let n=H(e),a=c=>c.getBoundingClientRect().bottom/o,r=Math.max(...n.map(([,c])=>a(c.at(-1)))),s=!1;for(let[c,i]of n){let l=i.filter((p,d)=>d>=q&&a(p)>r-t-U&&!p.matches(".more"));l.length&&(V(c,l),s=!0)}return s}var Y=.25,Z=['[class^="yaxislayer"] [class$="tick"] text','[class^="xaxislayer"] [class$="tick"] text',".annotation-text",".textpoint text, .heatmap-label"],N=e=>!!e.querySelector('[style*="bold"]')||Number(getComputedStyle(e).fontWeight)>500;function J(e){let{x:t,y:o,width:n,height:a}=e.getBBox(),{a:r,b:s,c,d:i,e:l,f:p}=e.getCTM(),d=Math.hypot(r,s),[m,f]=[r/d,s/d],[x,E]=[r*t+c*o+l,s*t+i*o+p],[$,O]=[m*x+f*E,m*E-f*x];return{angle:Math.atan2(s,r).toFixed(2),left:$,right:$+d*n,top:O,bottom:O+d*a}}function K(e,t){if(e.angle!==t.angle)return!1;let o=Y*Math.min(e.bottom-e.top,t.bottom-t.top);return e.left<t.right&&t.left<e.right&&e.top+o<t.bottom&&t.top+o<e.bottom}function Q(e){let t=0;for(let o of h(e))for(let n of o.querySelectorAll(".js-plotly-plot"))for(let a of Z){let r=[...n.querySelectorAll(a)].filter(i=>i.textContent.trim());r.forEach(i=>i.style.visibility="");let s=new Map(r.map(i=>[i,J(i)])),c=[];for(let i of[...r.filter(N),...r.filter(l=>!N(l))])c.every(p=>!K(s.get(p),s.get(i)))?c.push(i):i.style.visibility="hidden";t+=r.length-c.length}return t}var X=540,ee=1.8,te=.4,[C,L]=[350,300],j=260,ne=[190,150],k=.3,S=5,y=3,B=()=>Math.min(innerWidth,innerHeight)/X;async function oe(e){let t=e.floor??B();await e.zoom(t),await e.picture(L);let o=e.tall();await e.picture(C);let n=(e.tall()-o)/(C-L);n>k&&await e.picture(j);for(let a=0;a<S&&e.tall()>e.room()+y&&await e.cut(e.tall()-e.room());a+=1);n>k&&await re(e,n),n<=k?await D(e,t,[t,t*(e.largest??ee)]):e.tall()>e.room()+y&&await D(e,t,[t*te,t])}async function re(e,t){let o=j;for(let n=0;n<S;n+=1){let a=e.room()-e.tall();if(a>=0&&a<y)return;let r=Math.max(ne[t>1.5?1:0],o+Math.floor((a-1)/t));if(r===o)return;o=r,await e.picture(o)}}async function D(e,t,[o,n]){let[a,r]=[null,null];for(let s=1;s<=S;s+=1){let c=e.room()/e.tall();e.tall()<=e.room()+y?a=t:r=t;let i=a&&r?(a+r)/2:Math.min(Math.max(t*c,o),n);if(t===a&&c<1.1||Math.abs(i/t-1)<.02)break;t=i,await e.zoom(t)}a&&e.tall()>e.room()+y&&await e.zoom(a)}return {_0:b,_1:G,_2:F,_3:oe,_4:Q,_5:R,_6:I,_7:B,_8:h}}
