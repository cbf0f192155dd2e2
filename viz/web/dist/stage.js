export default({shared})=>{let{_1l:T,_3:b}=shared;var x="minmax(0, 1fr)",g=`
  .decode-player { --small: 0.85rem; --size: 1.6rem; padding-top: 0 !important; }
  .decode-player .text { padding-top: 0.9rem; }
  .decode-player .target { margin-top: 2.6rem !important; }
  .decode-player .line { line-height: 1.6; }
  :is(.decode-player .line, .texts p) { text-wrap: balance; } /* No piece stands alone in a line of its own. */
  .decode-player .below { grid-template-columns: ${x} minmax(17rem, 0.55fr) !important; gap: 2rem !important; margin-top: 0.5rem; }
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
  .texts { padding-top: 0; }
  @media (min-aspect-ratio: 1) { .texts { grid-template-columns: auto auto; } } /* The longer text has more of the line. */
  .texts h3 { min-height: 0; }
  .texts .hint { display: none; }
  .links .scroll { max-width: none; }
  .links :is(.heading, .numbers text) { font-size: inherit; }
  .links .scroll > svg { height: var(--picture, 350px); }
  .beam-tree .scroll { height: var(--picture, 350px); overflow-y: hidden; }
  .value { font-size: 12px; }
  .version { grid-template-columns: 6rem ${x} repeat(3, 6.2rem) !important; padding: 0.2rem 0.6rem !important; }
  .masks .readout { display: none; }
  @media (min-aspect-ratio: 1) { .masks .panels { grid-template-columns: repeat(4, ${x}) !important; } }
  .snapshots .pictures { grid-template-columns: minmax(0, 0.7fr) ${x} !important; }
  .snapshots .tick .name { font-size: 12px; }
  .snapshots .written { height: auto; font-size: 1.25rem; margin: 0; }
  .snapshots .track { padding-top: 1.4rem; padding-bottom: 1.2rem; }
  .snapshots .play { margin-top: 0.8rem; }
  .snapshots .frame { grid-template-rows: 4.8rem max(5rem, calc(var(--picture, 350px) - 6.6rem)); }
  .snapshots .grid { max-width: max(9rem, calc(var(--picture, 350px) - 2rem)); }
  .snapshots .reading { display: none; }
  .pipeline { display: flex; flex-wrap: wrap; gap: 0.8rem 2rem; align-items: center; }
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
`;var u=e=>`${b}:has(${e})`,v={sentence:[".st-key-sentence"],translation:[".st-key-translation",".st-key-again",".versions .after"],heads:[u(".st-key-overview"),u(".st-key-changes")],picture:[u(".st-key-head-picture"),u(".st-key-compared"),".st-key-picture",".st-key-fault-pair"],"next token":[".candidates",".text [data-state=predicted]",".legend .predicted"],attention:[".text > svg"],matrix:[".below > .matrix"],candidates:[".below > .candidates"],player:[".player",".where"],decoding:[".st-key-decode-player"],tree:[".st-key-tree"],best:[".st-key-best",".st-key-versions"],verdict:[".st-key-verdict",".st-key-fault-lead",`${u(".st-key-fault-lead")} ${b}`]},W=`
  .js-plotly-plot .annotation-text { visibility: hidden !important; }
  .js-plotly-plot .heatmaplayer { filter: grayscale(1); }`,_=`
  :root:has(.st-key-tree) :is(.st-key-decode-player, .st-key-best),
  .slide:is(:has(> [data-role=tree]), :has(:not([hidden]) > [data-role=tree])) [data-role=decoding] { display: none !important; }
  :root:has(.st-key-tree) .st-key-sentence { display: block !important; }`;function R(e,t,n){let o=m=>m.flatMap(f=>v[f]??[]).join(", "),r=t.includes("matrix")||t.includes("candidates")?".decode-player .below { grid-template-columns: minmax(0, 44rem) !important; justify-content: center; }":"",c=[...e,...t].includes("attention")?".text .source .piece { color: var(--st-text-color) !important; background: none !important; }":"",i=n&&!t.includes("tree")?_:"",l=e.includes("broken or fixed")?W:"",d=`${n}${i}${c}${r}${l}${t.length?`:is(${o(t)}) { display: none !important; }`:""}`;if(!e.some(m=>v[m]))return d;let p=":is(span, b, svg, p, .piece)";return`${d}
    :is(${o(e)}):not(${p}) { position: relative; }
    :is(${o(e)}):not(${p}) * { visibility: hidden !important; }
    :is(${o(e)}):not(${p})::after {
      content: "?"; position: absolute; inset: 0; display: grid; place-items: center; border-radius: 0.6rem;
      font-size: 1.5rem; opacity: 0.75; background: color-mix(in srgb, currentColor 7%, transparent);
    }
    svg:is(${o(e)}) { visibility: hidden !important; }
    :is(${o(e)}):is(${p}):not(svg) {
      forced-color-adjust: none; color: transparent !important; -webkit-text-stroke: 0 !important; text-decoration: none !important;
      background: color-mix(in srgb, currentColor 0%, light-dark(#d9d8dd, #3a3845)) !important; border-radius: 0.2em;
    }
    :is(${o(e)}):is(${p}) * { visibility: hidden !important; }
    @media (forced-colors: active), (prefers-contrast: more) { :is(${o(e)}):not(${p})::after { outline: 2px dashed; outline-offset: -2px; opacity: 1; } }`}function*h(e){yield e;for(let t of e.querySelectorAll("*"))t.shadowRoot&&(yield*h(t.shadowRoot))}function z(e,t,n,o=g+M){let{CSSStyleSheet:a}=e.defaultView,r=e.covering??=new a,s=R(t,n,o);e.covered!==s&&r.replaceSync(s),e.covered=s;let c=[...h(e)].filter(i=>!i.adoptedStyleSheets.includes(r));for(let i of c)i.adoptedStyleSheets=[...i.adoptedStyleSheets,r];return c.length>0}var A=(e,t)=>e.every((n,o)=>o<2?n>=t[o]:n<=t[o]);function G(e){let{innerWidth:t,innerHeight:n}=e.defaultView,o=[...h(e)],a=({left:i,top:l,right:d,bottom:p})=>[i/t,l/n,Math.min(d/t,1),Math.min(p/n,1)],r=i=>o.flatMap(l=>[...l.querySelectorAll(i.join(", "))].filter(d=>d.checkVisibility())).map(l=>a(l.getBoundingClientRect())).filter(([l,d,p,m])=>p>l&&m>d).filter((l,d,p)=>!p.some((m,f)=>f!==d&&A(l,m)&&(f<d||!A(m,l)))),s=Object.entries(v).map(([i,l])=>[i,r(l)]),c=e.querySelector(".st-key-fault-pair")?{"broken or fixed":[]}:{};return{...Object.fromEntries(s.filter(([,i])=>i.length)),...c}}var I="tbody > tr, ol:not(.steps) > li, .version:not(.heading), .part.caption",q=2,P=22;function U(e){let t=new Map;for(let n of h(e))for(let o of n.querySelectorAll(I))o.checkVisibility()&&t.set(o.parentElement,[...t.get(o.parentElement)??[],o]);return[...t].filter(([,n])=>n.length>q)}function H(e,t){for(let a of t)a.classList.add("left-out"),a.style.display="none";let n=e.querySelectorAll(":scope > .left-out").length,o=e.querySelector(":scope > .more");if(!o){let r=({TBODY:["tr","td"],OL:["li"]}[e.tagName]??["p"]).map(s=>e.ownerDocument.createElement(s));r[1]&&(r[0].append(r[1]),r[1].colSpan=99),o=r[0],o.classList.add("more"),o.style.cssText="list-style: none; opacity: 0.75",e.append(o)}(o.firstElementChild??o).textContent=T("and {count} more",{count:n})}function V(e,t,n){let o=U(e),a=c=>c.getBoundingClientRect().bottom/n,r=Math.max(...o.map(([,c])=>a(c.at(-1)))),s=!1;for(let[c,i]of o){let l=i.filter((d,p)=>p>=q&&a(d)>r-t-P&&!d.matches(".more"));l.length&&(H(c,l),s=!0)}return s}var F=.25,Y=['[class^="yaxislayer"] [class$="tick"] text','[class^="xaxislayer"] [class$="tick"] text',".annotation-text",".textpoint text, .heatmap-label"],C=e=>!!e.querySelector('[style*="bold"]')||Number(getComputedStyle(e).fontWeight)>500;function Z(e){let{x:t,y:n,width:o,height:a}=e.getBBox(),{a:r,b:s,c,d:i,e:l,f:d}=e.getCTM(),p=Math.hypot(r,s),[m,f]=[r/p,s/p],[S,E]=[r*t+c*n+l,s*t+i*n+d],[$,O]=[m*S+f*E,m*E-f*S];return{angle:Math.atan2(s,r).toFixed(2),left:$,right:$+p*o,top:O,bottom:O+p*a}}function J(e,t){if(e.angle!==t.angle)return!1;let n=F*Math.min(e.bottom-e.top,t.bottom-t.top);return e.left<t.right&&t.left<e.right&&e.top+n<t.bottom&&t.top+n<e.bottom}function K(e){let t=0;for(let n of h(e))for(let o of n.querySelectorAll(".js-plotly-plot"))for(let a of Y){let r=[...o.querySelectorAll(a)].filter(i=>i.textContent.trim());r.forEach(i=>i.style.visibility="");let s=new Map(r.map(i=>[i,Z(i)])),c=[];for(let i of[...r.filter(C),...r.filter(l=>!C(l))])c.every(d=>!J(s.get(d),s.get(i)))?c.push(i):i.style.visibility="hidden";t+=r.length-c.length}return t}var Q=540,X=1.8,ee=.4,[L,N]=[350,300],B=260,te=[190,150],w=.3,k=5,y=3,j=()=>Math.min(innerWidth,innerHeight)/Q;async function oe(e){let t=e.floor??j();await e.zoom(t),await e.picture(N);let n=e.tall();await e.picture(L);let o=(e.tall()-n)/(L-N);o>w&&await e.picture(B);for(let a=0;a<k&&e.tall()>e.room()+y&&await e.cut(e.tall()-e.room());a+=1);o>w&&await ne(e,o),o<=w?await D(e,t,[t,t*(e.largest??X)]):e.tall()>e.room()+y&&await D(e,t,[t*ee,t])}async function ne(e,t){let n=B;for(let o=0;o<k;o+=1){let a=e.room()-e.tall();if(a>=0&&a<y)return;let r=Math.max(te[t>1.5?1:0],n+Math.floor((a-1)/t));if(r===n)return;n=r,await e.picture(n)}}async function D(e,t,[n,o]){let[a,r]=[null,null];for(let s=1;s<=k;s+=1){let c=e.room()/e.tall();e.tall()<=e.room()+y?a=t:r=t;let i=a&&r?(a+r)/2:Math.min(Math.max(t*c,n),o);if(t===a&&c<1.1||Math.abs(i/t-1)<.02)break;t=i,await e.zoom(t)}a&&e.tall()>e.room()+y&&await e.zoom(a)}return {_0:g,_1:z,_2:V,_3:oe,_4:K,_5:R,_6:G,_7:j,_8:h}}
