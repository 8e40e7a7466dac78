/** Malformed and hostile documents, with the expected refusals. */

/** A body and its media type. */
export interface Hostile {
  readonly name: string
  readonly body: string | Uint8Array
  readonly type?: string
  /** Wrong only as a notification: other resources may ignore unknown elements. */
  readonly wellFormed?: true
}

const item = (inside: string): string => `<notification><item>${inside}</item></notification>`
const whole = "<description>d</description><url>http://a.test/</url>"
const nested = (depth: number, name = "a"): string =>
  `<${name}>`.repeat(depth) + `</${name}>`.repeat(depth)
const utf16 = (text: string, bigEndian: boolean): Buffer => {
  const bytes = Buffer.from(`\uFEFF${text}`, "utf16le")
  return bigEndian ? bytes.swap16() : bytes
}
const laughs = `<!DOCTYPE lolz [<!ENTITY lol "lol">${
  Array.from({ length: 9 }, (_, n) =>
    `<!ENTITY lol${n + 1} "${`&lol${n === 0 ? "" : n};`.repeat(10)}">`).join("")
}]>`

const json = "application/json"

/** Invalid notifications; the service refuses each with a 4xx and stores nothing. */
export const hostileDocuments: ReadonlyArray<Hostile> = [
  { name: "nothing", body: "" },
  { name: "a bare <", body: "<" },
  { name: "plain text", body: "hello" },
  { name: "an unclosed element", body: `<notification><item>${whole}` },
  { name: "crossed elements", body: `<notification><item>${whole}</notification></item>` },
  { name: "two roots", body: item(whole) + item(whole) },
  { name: "text after the root", body: `${item(whole)}x` },
  { name: "another root", body: `<notice><item>${whole}</item></notice>` },
  { name: "no item", body: "<notification/>" },
  { name: "no url", body: item("<description>d</description>") },
  { name: "no description", body: item("<url>http://a.test/</url>") },
  { name: "two descriptions", body: item(`<description>x</description>${whole}`) },
  { name: "33 levels", body: item(`${whole}${nested(31)}`) },
  { name: "10,000 levels", body: item(`${whole}${nested(10_000)}`) },
  { name: "20,001 elements", body: item(`${whole}${"<a/>".repeat(20_001)}`) },
  {
    name: "30,000 attributes",
    body: item(
      `<description ${
        Array.from({ length: 20_000 }, (_, n) => `a${n}=""`).join(" ")
      }>d</description><url>http://a.test/</url>`
    )
  },
  { name: "a doubled attribute", body: item(`<description a="1" a="2">d</description>`) },
  { name: "a long name", body: item(`${whole}<${"n".repeat(5_000)}/>`) },
  { name: "a document type", body: `<!DOCTYPE notification>${item(whole)}` },
  {
    name: "an external entity",
    body: `<!DOCTYPE n [<!ENTITY x SYSTEM "file:///etc/passwd">]>${
      item("<description>&x;</description><url>http://a.test/</url>")
    }`
  },
  {
    name: "a parameter entity",
    body: `<!DOCTYPE n [<!ENTITY % x SYSTEM "http://127.0.0.1:1/x.dtd"> %x;]>${item(whole)}`
  },
  {
    name: "a billion laughs",
    body: laughs + item("<description>&lol9;</description><url>http://a.test/</url>")
  },
  { name: "an undeclared entity", body: item(`${whole}<a>&foo;</a>`) },
  { name: "a forbidden character", body: item(`${whole}<a>&#0;</a>`) },
  { name: "a control character", body: item(`${whole}<a>\u0008</a>`) },
  { name: "half a surrogate pair", body: item(`${whole}<a>&#xD800;</a>`) },
  { name: "a processing instruction", body: `<?php echo 1 ?>${item(whole)}` },
  { name: "__proto__", body: item(`${whole}<__proto__><admin/></__proto__>`) },
  { name: "constructor", body: item(`${whole}<constructor/>`) },
  { name: "prototype as an attribute", body: item(`${whole}<a prototype="x"/>`) },
  { name: "an undeclared prefix", body: item(`${whole}<x:a/>`) },
  { name: "]]> in text", body: item(`${whole}<a>]]></a>`) },
  { name: "an endless comment", body: `<!--${"-".repeat(200_000)}` },
  { name: "an endless CDATA section", body: `<notification><![CDATA[${"]".repeat(200_000)}` },
  { name: "257 KiB", body: item(`${whole}<a>${"x".repeat(263_000)}</a>`) },
  { name: "UTF-16, little end first", body: utf16(item(whole), false) },
  { name: "UTF-16, big end first", body: utf16(item(whole), true) },
  { name: "a charset of UTF-16", body: item(whole), type: "application/xml; charset=utf-16" },
  { name: "a declared encoding", body: `<?xml version="1.0" encoding="UTF-7"?>${item(whole)}` },
  { name: "XML 1.1", body: `<?xml version="1.1"?>${item(`${whole}<a>&#1;</a>`)}` },
  {
    name: "invalid UTF-8",
    body: Buffer.concat([
      Buffer.from("<notification><item><description>"),
      Buffer.from([0xc3, 0x28])
    ])
  },
  { name: "an overlong encoding", body: Buffer.from([0xc0, 0xbc, 0x61, 0x2f, 0x3e]) },
  { name: "random bytes", body: Buffer.from("9f8e7d6c5b4a39281706f5e4d3c2b1a0", "hex") },
  { name: "no JSON", body: "{", type: json },
  { name: "JSON of another kind", body: "[]", type: json },
  { name: "a number that JSON lacks", body: "NaN", type: json },
  { name: "100,000 brackets", body: "[".repeat(100_000), type: json },
  { name: "deep JSON", body: `{"a":`.repeat(5_000) + "1" + "}".repeat(5_000), type: json },
  {
    name: "JSON of wrong types",
    body: JSON.stringify({ notification: { item: { description: {}, url: [{}] } } }),
    type: json,
    wellFormed: true
  },
  {
    name: "__proto__ in JSON",
    body: `{"notification":{"__proto__":{"item":{}},"item":{"description":"d",` +
      `"url":"http://a.test/","__proto__":{"admin":"true"}}}}`,
    type: json
  },
  {
    name: "a bad percent escape",
    body: "description=%zz&url=%",
    type: "application/x-www-form-urlencoded"
  },
  {
    name: "NUL in a form",
    body: "description=%00&url=x",
    type: "application/x-www-form-urlencoded"
  },
  { name: "an unknown type", body: item(whole), type: "text/html" },
  { name: "a type that is none", body: item(whole), type: ";;;" },
  { name: "a multipart body", body: "--x--", type: "multipart/form-data; boundary=x" }
]
