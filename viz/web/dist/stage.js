export default({shared})=>{let{_14:C}=shared;var g="minmax(0, 1fr)",b=`
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
`;var j='[data-testid="stMainBlockContainer"]',w='[data-testid="stColumn"]',z='[data-testid="stElementContainer"]';var V='[data-testid="stBidiComponent"]';var ht=`${j} ${z}:not(.st-key-arrival, .st-key-browser-history) > ${V}`;var y=t=>`${w}:has(${t})`,v={sentence:[".st-key-sentence",".sentence > .source"],translation:[".st-key-translation",".st-key-again",".versions .after",".sentence > :is(.target, .says, svg)"],heads:[y(".st-key-overview"),y(".st-key-changes")],picture:[y(".st-key-head-picture"),y(".st-key-compared"),".st-key-picture",".st-key-fault-pair"],"next token":[".candidates",".text [data-state=predicted]",".legend .predicted"],attention:[".text > svg"],matrix:[".below > .matrix"],candidates:[".below > .candidates"],player:[".player",".where"],decoding:[".st-key-decode-player"],tree:[".st-key-tree"],best:[".st-key-best",".st-key-versions"],verdict:[".st-key-verdict",".st-key-fault-lead",`${y(".st-key-fault-lead")} ${w}`]},G=`
  .js-plotly-plot .annotation-text { visibility: hidden !important; }
  .js-plotly-plot .heatmaplayer { filter: grayscale(1); }`,U=`
  :root:has(.st-key-tree) :is(.st-key-decode-player, .st-key-best),
  .slide:is(:has(> [data-role=tree]), :has(:not([hidden]) > [data-role=tree])) [data-role=decoding] { display: none !important; }
  :root:has(.st-key-tree) .st-key-sentence { display: block !important; }`,H=`
  :root:has(.st-key-sentence-picture) :is(.st-key-sentence:not(:has(textarea)), .st-key-translation) { display: none !important; }
  .st-key-sentence-picture { display: flex !important; }`;function N(t,e,n){let o=f=>f.flatMap(x=>v[x]??[]).join(", "),i=e.includes("matrix")||e.includes("candidates")?".decode-player .below { grid-template-columns: minmax(0, 44rem) !important; justify-content: center; }":"",s=[...t,...e].includes("attention")?".text .source .piece { color: var(--st-text-color) !important; background: none !important; }":"",c=[...t,...e].includes("translation")?".sentence > .source button { color: inherit !important; background: none !important; }":"",a=n&&!e.includes("tree")?U:"",l=n&&["heads","picture"].every(f=>e.includes(f))?H:"",p=t.includes("broken or fixed")?G:"",d=`${n}${a}${l}${c}${s}${i}${p}${e.length?`:is(${o(e)}) { display: none !important; }`:""}`;if(!t.some(f=>v[f]))return d;let m=":is(span, b, svg, p, .piece)";return`${d}
    :is(${o(t)}):not(${m}) { position: relative; }
    :is(${o(t)}):not(${m}) * { visibility: hidden !important; }
    :is(${o(t)}):not(${m})::after {
      content: "?"; position: absolute; inset: 0; display: grid; place-items: center; border-radius: 0.6rem;
      font-size: 1.5rem; opacity: 0.75; background: color-mix(in srgb, currentColor 7%, transparent);
    }
    svg:is(${o(t)}) { visibility: hidden !important; }
    :is(${o(t)}):is(${m}):not(svg) {
      forced-color-adjust: none; color: transparent !important; -webkit-text-stroke: 0 !important; text-decoration: none !important;
      background: color-mix(in srgb, currentColor 0%, light-dark(#d9d8dd, #3a3845)) !important; border-radius: 0.2em;
    }
    :is(${o(t)}):is(${m}) * { visibility: hidden !important; }
    @media (forced-colors: active), (prefers-contrast: more) { :is(${o(t)}):not(${m})::after { outline: 2px dashed; outline-offset: -2px; opacity: 1; } }`}function*u(t){yield t;for(let e of t.querySelectorAll("*"))e.shadowRoot&&(yield*u(e.shadowRoot))}function Y(t,e,n,o=b+M){let{CSSStyleSheet:i}=t.defaultView,r=t.covering??=new i,s=N(e,n,o);t.covered!==s&&r.replaceSync(s),t.covered=s;let c=[...u(t)].filter(a=>!a.adoptedStyleSheets.includes(r));for(let a of c)a.adoptedStyleSheets=[...a.adoptedStyleSheets,r];return c.length>0}var T=(t,e)=>t.every((n,o)=>o<2?n>=e[o]:n<=e[o]);function F(t){let{innerWidth:e,innerHeight:n}=t.defaultView,o=[...u(t)],i=({left:a,top:l,right:p,bottom:d})=>[a/e,l/n,Math.min(p/e,1),Math.min(d/n,1)],r=a=>o.flatMap(l=>[...l.querySelectorAll(a.join(", "))].filter(p=>p.checkVisibility())).map(l=>i(l.getBoundingClientRect())).filter(([l,p,d,m])=>d>l&&m>p).filter((l,p,d)=>!d.some((m,f)=>f!==p&&T(l,m)&&(f<p||!T(m,l)))),s=Object.entries(v).map(([a,l])=>[a,r(l)]),c=t.querySelector(".st-key-fault-pair")?{"broken or fixed":[]}:{};return{...Object.fromEntries(s.filter(([,a])=>a.length)),...c}}var S="tbody > tr, ol:not(.steps) > li, .version:not(.heading), .part.caption",B=2,K=22;function Z(t){let e=new Map;for(let n of u(t))for(let o of n.querySelectorAll(S))o.checkVisibility()&&e.set(o.parentElement,[...e.get(o.parentElement)??[],o]);return[...e].filter(([,n])=>n.length>B)}function I(t,e){for(let i of e)i.classList.add("left-out"),i.style.display="none";let n=t.querySelectorAll(":scope > .left-out").length,o=t.querySelector(":scope > .more");if(!o){let r=({TBODY:["tr","td"],OL:["li"]}[t.tagName]??["p"]).map(s=>t.ownerDocument.createElement(s));r[1]&&(r[0].append(r[1]),r[1].colSpan=99),o=r[0],o.classList.add("more"),o.style.cssText="list-style: none; opacity: 0.75",t.append(o)}(o.firstElementChild??o).textContent=C("and {count} more",{count:n})}function J(t,e,n){let o=Z(t),i=c=>c.getBoundingClientRect().bottom/n,r=Math.max(...o.map(([,c])=>i(c.at(-1)))),s=!1;for(let[c,a]of o){let l=a.filter((p,d)=>d>=B&&i(p)>r-e-K&&!p.matches(".more"));l.length&&(I(c,l),s=!0)}return s}var W=t=>[...new Set([...u(t)].flatMap(e=>[...e.querySelectorAll(S)]).map(e=>e.parentElement))],Q=t=>W(t).map(e=>e.querySelectorAll(":scope > .left-out").length);function X(t,e){let n=W(t);if(n.length!==e.length)return!1;let o=i=>[...i.querySelectorAll(S)].filter(r=>r.parentElement===i&&r.checkVisibility());return n.forEach((i,r)=>e[r]&&I(i,o(i).slice(-e[r]))),!0}function tt(t){for(let e of u(t)){for(let n of e.querySelectorAll(".left-out ~ .more"))n.remove();for(let n of e.querySelectorAll(".left-out"))n.classList.remove("left-out"),n.style.display=""}}var et=.25,ot=['[class^="yaxislayer"] [class$="tick"] text','[class^="xaxislayer"] [class$="tick"] text',".annotation-text",".textpoint text, .heatmap-label"],R=t=>!!t.querySelector('[style*="bold"]')||Number(getComputedStyle(t).fontWeight)>500;function nt(t){let{x:e,y:n,width:o,height:i}=t.getBBox(),{a:r,b:s,c,d:a,e:l,f:p}=t.getCTM(),d=Math.hypot(r,s),[m,f]=[r/d,s/d],[x,O]=[r*e+c*n+l,s*e+a*n+p],[$,A]=[m*x+f*O,m*O-f*x];return{angle:Math.atan2(s,r).toFixed(2),left:$,right:$+d*o,top:A,bottom:A+d*i}}function rt(t,e){if(t.angle!==e.angle)return!1;let n=et*Math.min(t.bottom-t.top,e.bottom-e.top);return t.left<e.right&&e.left<t.right&&t.top+n<e.bottom&&e.top+n<t.bottom}function it(t){let e=0;for(let n of u(t))for(let o of n.querySelectorAll(".js-plotly-plot"))for(let i of ot){let r=[...o.querySelectorAll(i)].filter(a=>a.textContent.trim());r.forEach(a=>a.style.visibility="");let s=new Map(r.map(a=>[a,nt(a)])),c=[];for(let a of[...r.filter(R),...r.filter(l=>!R(l))])c.every(p=>!rt(s.get(p),s.get(a)))?c.push(a):a.style.visibility="hidden";e+=r.length-c.length}return e}var at=540,st=1.8,lt=.4,[L,q]=[350,300],_=260,ct=[190,150],k=.3,E=5,h=3,P=()=>Math.min(innerWidth,innerHeight)/at;async function pt(t){let e=t.floor??P();await t.zoom(e),await t.picture(q);let n=t.tall();await t.picture(L);let o=(t.tall()-n)/(L-q);o>k&&await t.picture(_);for(let i=0;i<E&&t.tall()>t.room()+h&&await t.cut(t.tall()-t.room());i+=1);o>k&&await dt(t,o),o<=k?await D(t,e,[e,e*(t.largest??st)]):t.tall()>t.room()+h&&await D(t,e,[e*lt,e])}async function dt(t,e){let n=_;for(let o=0;o<E;o+=1){let i=t.room()-t.tall();if(i>=0&&i<h)return;let r=Math.max(ct[e>1.5?1:0],n+Math.floor((i-1)/e));if(r===n)return;n=r,await t.picture(n)}}async function D(t,e,[n,o]){let[i,r]=[null,null];for(let s=1;s<=E;s+=1){let c=t.room()/t.tall();t.tall()<=t.room()+h?i=e:r=e;let a=i&&r?(i+r)/2:Math.min(Math.max(e*c,n),o);if(e===i&&c<1.1||Math.abs(a/e-1)<.02)break;e=a,await t.zoom(e)}i&&t.tall()>t.room()+h&&await t.zoom(i)}return {_0:b,_1:h,_2:Y,_3:X,_4:J,_5:Q,_6:pt,_7:it,_8:N,_9:F,_a:P,_b:u,_c:tt}}
