export default({shared})=>{let{_16:T}=shared;var b='[data-testid="stColumn"]';var y=e=>`${b}:has(${e})`,w={sentence:[".st-key-sentence",".sentence > .source"],translation:[".st-key-translation",".st-key-again",".versions .after",".sentence > :is(.target, .says, svg)"],heads:[y(".st-key-overview"),y(".st-key-changes")],picture:[y(".st-key-head-picture"),y(".st-key-compared"),".st-key-picture",".st-key-fault-pair"],"next token":[".candidates",".text [data-state=predicted]",".legend .predicted"],attention:[".text > svg"],matrix:[".below > .matrix"],candidates:[".below > .candidates"],player:[".player",".where"],decoding:[".st-key-decode-player"],tree:[".st-key-tree"],best:[".st-key-best",".st-key-versions"],verdict:[".st-key-verdict",".st-key-fault-lead",`${y(".st-key-fault-lead")} ${b}`]},j=`
  .js-plotly-plot .annotation-text { visibility: hidden !important; }
  .js-plotly-plot .heatmaplayer { filter: grayscale(1); }`,P=`
  :root:has(.st-key-tree) :is(.st-key-decode-player, .st-key-best),
  .slide:is(:has(> [data-role=tree]), :has(:not([hidden]) > [data-role=tree])) [data-role=decoding] { display: none !important; }
  :root:has(.st-key-tree) .st-key-sentence { display: block !important; }`,z=`
  :root:has(.st-key-sentence-picture) :is(.st-key-sentence:not(:has(textarea)), .st-key-translation) { display: none !important; }
  .st-key-sentence-picture { display: flex !important; }`,g="minmax(0, 1fr)",M=`
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
`,U=`
  select { appearance: none; border: 0 !important; pointer-events: none; }
  .forbid, .wide, .speed { display: none !important; }
`;function C(e,t,n){let o=f=>f.flatMap(x=>w[x]??[]).join(", "),i=t.includes("matrix")||t.includes("candidates")?".decode-player .below { grid-template-columns: minmax(0, 44rem) !important; justify-content: center; }":"",s=[...e,...t].includes("attention")?".text .source .piece { color: var(--st-text-color) !important; background: none !important; }":"",c=[...e,...t].includes("translation")?".sentence > .source button { color: inherit !important; background: none !important; }":"",a=n&&!t.includes("tree")?P:"",l=n&&["heads","picture"].every(f=>t.includes(f))?z:"",p=e.includes("broken or fixed")?j:"",d=`${n}${a}${l}${c}${s}${i}${p}${t.length?`:is(${o(t)}) { display: none !important; }`:""}`;if(!e.some(f=>w[f]))return d;let m=":is(span, b, svg, p, .piece)";return`${d}
    :is(${o(e)}):not(${m}) { position: relative; }
    :is(${o(e)}):not(${m}) * { visibility: hidden !important; }
    :is(${o(e)}):not(${m})::after {
      content: "?"; position: absolute; inset: 0; display: grid; place-items: center; border-radius: 0.6rem;
      font-size: 1.5rem; opacity: 0.75; background: color-mix(in srgb, currentColor 7%, transparent);
    }
    svg:is(${o(e)}) { visibility: hidden !important; }
    :is(${o(e)}):is(${m}):not(svg) {
      forced-color-adjust: none; color: transparent !important; -webkit-text-stroke: 0 !important; text-decoration: none !important;
      background: color-mix(in srgb, currentColor 0%, light-dark(#d9d8dd, #3a3845)) !important; border-radius: 0.2em;
    }
    :is(${o(e)}):is(${m}) * { visibility: hidden !important; }
    @media (forced-colors: active), (prefers-contrast: more) { :is(${o(e)}):not(${m})::after { outline: 2px dashed; outline-offset: -2px; opacity: 1; } }`}function*u(e){yield e;for(let t of e.querySelectorAll("*"))t.shadowRoot&&(yield*u(t.shadowRoot))}function V(e,t,n,o=M+U){if(!e?.defaultView)return!1;let{CSSStyleSheet:i}=e.defaultView,r=e.covering??=new i,s=C(t,n,o);e.covered!==s&&r.replaceSync(s),e.covered=s;let c=[...u(e)].filter(a=>!a.adoptedStyleSheets.includes(r));for(let a of c)a.adoptedStyleSheets=[...a.adoptedStyleSheets,r];return c.length>0}var A=(e,t)=>e.every((n,o)=>o<2?n>=t[o]:n<=t[o]);function G(e){let{innerWidth:t,innerHeight:n}=e.defaultView,o=[...u(e)],i=({left:a,top:l,right:p,bottom:d})=>[a/t,l/n,Math.min(p/t,1),Math.min(d/n,1)],r=a=>o.flatMap(l=>[...l.querySelectorAll(a.join(", "))].filter(p=>p.checkVisibility())).map(l=>i(l.getBoundingClientRect())).filter(([l,p,d,m])=>d>l&&m>p).filter((l,p,d)=>!d.some((m,f)=>f!==p&&A(l,m)&&(f<p||!A(m,l)))),s=Object.entries(w).map(([a,l])=>[a,r(l)]),c=e.querySelector(".st-key-fault-pair")?{"broken or fixed":[]}:{};return{...Object.fromEntries(s.filter(([,a])=>a.length)),...c}}var k="tbody > tr, ol:not(.steps) > li, .version:not(.heading), .part.caption",D=2,H=22;function Y(e){let t=new Map;for(let n of u(e))for(let o of n.querySelectorAll(k))o.checkVisibility()&&t.set(o.parentElement,[...t.get(o.parentElement)??[],o]);return[...t].filter(([,n])=>n.length>D)}function B(e,t){for(let i of t)i.classList.add("left-out"),i.style.display="none";let n=e.querySelectorAll(":scope > .left-out").length,o=e.querySelector(":scope > .more");if(!o){let r=({TBODY:["tr","td"],OL:["li"]}[e.tagName]??["p"]).map(s=>e.ownerDocument.createElement(s));r[1]&&(r[0].append(r[1]),r[1].colSpan=99),o=r[0],o.classList.add("more"),o.style.cssText="list-style: none; opacity: 0.75",e.append(o)}(o.firstElementChild??o).textContent=T("and {count} more",{count:n})}function F(e,t,n){let o=Y(e),i=c=>c.getBoundingClientRect().bottom/n,r=Math.max(...o.map(([,c])=>i(c.at(-1)))),s=!1;for(let[c,a]of o){let l=a.filter((p,d)=>d>=D&&i(p)>r-t-H&&!p.matches(".more"));l.length&&(B(c,l),s=!0)}return s}var I=e=>[...new Set([...u(e)].flatMap(t=>[...t.querySelectorAll(k)]).map(t=>t.parentElement))],K=e=>I(e).map(t=>t.querySelectorAll(":scope > .left-out").length);function Z(e,t){let n=I(e);if(n.length!==t.length)return!1;let o=i=>[...i.querySelectorAll(k)].filter(r=>r.parentElement===i&&r.checkVisibility());return n.forEach((i,r)=>t[r]&&B(i,o(i).slice(-t[r]))),!0}function J(e){for(let t of u(e)){for(let n of t.querySelectorAll(".left-out ~ .more"))n.remove();for(let n of t.querySelectorAll(".left-out"))n.classList.remove("left-out"),n.style.display=""}}var Q=.25,X=['[class^="yaxislayer"] [class$="tick"] text','[class^="xaxislayer"] [class$="tick"] text',".annotation-text",".textpoint text, .heatmap-label"],N=e=>!!e.querySelector('[style*="bold"]')||Number(getComputedStyle(e).fontWeight)>500;function ee(e){let{x:t,y:n,width:o,height:i}=e.getBBox(),{a:r,b:s,c,d:a,e:l,f:p}=e.getCTM(),d=Math.hypot(r,s),[m,f]=[r/d,s/d],[x,E]=[r*t+c*n+l,s*t+a*n+p],[O,$]=[m*x+f*E,m*E-f*x];return{angle:Math.atan2(s,r).toFixed(2),left:O,right:O+d*o,top:$,bottom:$+d*i}}function te(e,t){if(e.angle!==t.angle)return!1;let n=Q*Math.min(e.bottom-e.top,t.bottom-t.top);return e.left<t.right&&t.left<e.right&&e.top+n<t.bottom&&t.top+n<e.bottom}function oe(e){let t=0;for(let n of u(e))for(let o of n.querySelectorAll(".js-plotly-plot"))for(let i of X){let r=[...o.querySelectorAll(i)].filter(a=>a.textContent.trim());r.forEach(a=>a.style.visibility="");let s=new Map(r.map(a=>[a,ee(a)])),c=[];for(let a of[...r.filter(N),...r.filter(l=>!N(l))])c.every(p=>!te(s.get(p),s.get(a)))?c.push(a):a.style.visibility="hidden";t+=r.length-c.length}return t}var ne=540,re=1.8,ie=.4,[R,L]=[350,300],W=260,ae=[190,150],v=.3,S=5,h=3,_=()=>Math.min(innerWidth,innerHeight)/ne;async function se(e){let t=e.floor??_();await e.zoom(t),await e.picture(L);let n=e.tall();await e.picture(R);let o=(e.tall()-n)/(R-L);o>v&&await e.picture(W);for(let i=0;i<S&&e.tall()>e.room()+h&&await e.cut(e.tall()-e.room());i+=1);o>v&&await le(e,o),o<=v?await q(e,t,[t,t*(e.largest??re)]):e.tall()>e.room()+h&&await q(e,t,[t*ie,t])}async function le(e,t){let n=W;for(let o=0;o<S;o+=1){let i=e.room()-e.tall();if(i>=0&&i<h)return;let r=Math.max(ae[t>1.5?1:0],n+Math.floor((i-1)/t));if(r===n)return;n=r,await e.picture(n)}}async function q(e,t,[n,o]){let[i,r]=[null,null];for(let s=1;s<=S;s+=1){let c=e.room()/e.tall();e.tall()<=e.room()+h?i=t:r=t;let a=i&&r?(i+r)/2:Math.min(Math.max(t*c,n),o);if(t===i&&c<1.1||Math.abs(a/t-1)<.02)break;t=a,await e.zoom(t)}i&&e.tall()>e.room()+h&&await e.zoom(i)}return {_0:M,_1:h,_2:V,_3:Z,_4:F,_5:K,_6:se,_7:oe,_8:C,_9:G,_a:_,_b:u,_c:J}}
