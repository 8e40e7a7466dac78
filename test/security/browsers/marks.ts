/**
 * Hostile texts. Each has a number, which its scripts report, so that a script that ran names the
 * field that it came by.
 */

/** A number for each field, and what would act if a browser took the field for markup. */
export class Mark {
  readonly id: number
  /** The URI that only a browser that was deceived requests. */
  readonly beacon: string
  /** A script without quotation marks, spaces, `<` and `&`, which fits in most contexts. */
  readonly code: string

  constructor(id: number, beacons: string) {
    this.id = id
    this.beacon = `${beacons}/${id}`
    this.code = `self.ran?.(${id}),new(Image)().src=\`${this.beacon}\``
  }

  /** Ends whatever the text may stand in, and then acts in as many ways as the length allows. */
  text(charsMax = 100_000): string {
    let text = ""
    for (const part of this.parts()) if (text.length + part.length <= charsMax) text += part
    return text
  }

  private parts(): ReadonlyArray<string> {
    const { beacon, code } = this
    const script = `<script>${code}</script>`
    return [
      "]]>--></title></style></script></textarea></p>\"'>",
      script,
      `<img src=x onerror=${code}>`,
      `<svg onload="${code}"><script>${code}</script></svg>`,
      `<script src="${beacon}"></script>`,
      `<h:script xmlns:h="http://www.w3.org/1999/xhtml">${code}</h:script>`,
      `<iframe src="javascript:${code}"></iframe><iframe srcdoc="${script}"></iframe>`,
      `<object data="${beacon}"></object><embed src="${beacon}">`,
      `<link rel=stylesheet href="${beacon}"><style>@import "${beacon}";</style>`,
      `<meta http-equiv=refresh content="0;url=${beacon}"><base href="${beacon}/">`,
      `<details open ontoggle=${code}><input autofocus onfocus=${code}></details>`,
      `<form action="javascript:${code}"><button autofocus>go</button></form>`,
      `<math><mtext><mglyph><style><img src=x onerror=${code}></style></mglyph></mtext></math>`,
      `<?xml-stylesheet type="text/css" href="${beacon}"?><!DOCTYPE x SYSTEM "${beacon}">`,
      `&lt;script&gt;${code}&lt;/script&gt; &#60;script&#62;${code}&#60;/script&#62;`,
      `\\u003cscript\\u003e${code}\\u003c/script\\u003e +ADw-script+AD4-${code}+ADw-/script+AD4-`,
      `');${code};(' \\');${code};// \${${code}} {{constructor.constructor(\`${code}\`)()}}`,
      `\u2028${code}\u2029 javascript:${code}`
    ]
  }
}

export class Marks {
  private readonly beacons: string
  private readonly labels: Array<string> = []

  /** `beacons`: the origin of the server that must get no request. */
  constructor(beacons: string) {
    this.beacons = beacons
  }

  of(label: string): Mark {
    this.labels.push(label)
    return new Mark(this.labels.length - 1, this.beacons)
  }

  /** The field of a number. */
  labelOf(id: number): string {
    return this.labels[id] ?? `unknown mark ${id}`
  }
}
