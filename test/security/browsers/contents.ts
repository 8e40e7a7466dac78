/** Content that a browser would run if it could, in every type that some browser ever ran. */
import type { Mark, Marks } from "./marks.ts"

export interface HostileContent {
  readonly type: string
  readonly body: string | Uint8Array
  /** Each is published with it; an empty one leaves the choice to the service. */
  readonly dispositions: ReadonlyArray<string>
}

const page = ({ code }: Mark, text: string) =>
  `<!DOCTYPE html><html><head><script>${code}</script></head><body onload="${code}">${text}`

const xhtml = ({ beacon, code }: Mark) =>
  `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><script>${code}</script>`
  + `<script src="${beacon}"/></head><body onload="${code}"/></html>`

const svg = ({ beacon, code }: Mark) =>
  `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"`
  + ` onload="${code}"><script>${code}</script><image xlink:href="${beacon}"/>`
  + `<set attributeName="x" to="1" onbegin="${code}"/><foreignObject><iframe`
  + ` xmlns="http://www.w3.org/1999/xhtml" src="javascript:${code}"/></foreignObject></svg>`

const stylesheet = ({ code }: Mark) =>
  `<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">`
  + `<xsl:template match="/"><html><script>${code}</script></html></xsl:template></xsl:stylesheet>`

/** An XML document with a style sheet in itself (XSLT 1.0, section 2.7). */
const transformed = (mark: Mark) => {
  const inner = stylesheet(mark).replace("<xsl:stylesheet", "<xsl:stylesheet id=\"s\"")
  return `<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="#s"?><!DOCTYPE x [`
    + `<!ATTLIST xsl:stylesheet id ID #REQUIRED>]><x>${inner}</x>`
}

const pdf = ({ beacon, code }: Mark) =>
  `%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(app.alert\\(1\\);`
  + `${
    code.replaceAll(/[()]/g, "\\$&")
  })>>>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj`
  + ` 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/AA<</O<</S/URI/URI(${beacon})>>>>>>endobj`
  + ` trailer<</Root 1 0 R>>`

const multipart = (mark: Mark, text: string) =>
  `--b\r\nContent-Type: text/html\r\nContent-Location: http://x/\r\n\r\n${
    page(mark, text)
  }\r\n--b--`

/** A script that begins as an image. */
const polyglot = ({ code }: Mark) => Buffer.from(`GIF89a=1;${code};/*<html>*/`, "latin1")

/** Texts in an encoding in which markup has no `<`. */
const encoded = ({ code }: Mark) => `+ADw-html+AD4APA-script+AD4-${code}+ADw-/script+AD4-`

const shown = ["", "inline"]

export const hostileContents = (marks: Marks): ReadonlyArray<HostileContent> => {
  const of = (
    type: string,
    bodyOf: (mark: Mark) => string | Uint8Array,
    dispositions: ReadonlyArray<string> = shown
  ): HostileContent => ({ type, body: bodyOf(marks.of(`content of ${type}`)), dispositions })
  const html = (mark: Mark) => page(mark, mark.text())
  const names = marks.of("file name").text(300).replaceAll(/[^\x20-\x7e]|["\\]/g, "")
  return [
    of("text/html", html, [
      ...shown,
      `inline; filename="a.html${names}"`,
      `attachment; filename="${names}"`,
      "unknown; name=x"
    ]),
    ...["TEXT/HTML ;x=\"y\"", "text/html; charset=utf-7", "text/html; charset=utf-16"]
      .map((type) => of(type, (mark) => page(mark, encoded(mark)))),
    ...[
      "text/plain",
      "text/plain; charset=utf-7",
      "text/plain; charset=x-user-defined",
      "application/octet-stream",
      "application/unknown",
      "unknown/unknown",
      "*/*",
      "image/png",
      "image/x-icon",
      "audio/mpeg",
      "video/mp4",
      "text/vtt",
      "text/cache-manifest",
      "text/markdown",
      "text/x-component",
      "application/json",
      "application/hta",
      "application/http-index-format",
      "application/x-shockwave-flash",
      "application/vnd.mozilla.xul+xml"
    ].map((type) => of(type, html, type === "text/plain" ? shown : ["inline"])),
    ...[
      "application/xhtml+xml",
      "application/xml",
      "text/xml",
      "application/rss+xml",
      "application/atom+xml",
      "application/mathml+xml",
      "image/svg+xml; charset=utf-8"
    ].map((type) => of(type, xhtml, ["inline"])),
    of("image/svg+xml", svg),
    of("text/xml", transformed, ["inline"]),
    of("text/xsl", stylesheet, ["inline"]),
    of("application/xslt+xml", stylesheet, ["inline"]),
    ...[
      "application/pdf",
      "text/pdf",
      "text/plain; x=1, application/pdf",
      "image/png;,text/pdf"
    ].map((type) => of(type, pdf)),
    of("multipart/x-mixed-replace; boundary=b", (mark) => multipart(mark, mark.text()), ["inline"]),
    of("multipart/related; boundary=b", (mark) => multipart(mark, mark.text()), ["inline"]),
    of("message/rfc822", (mark) => `Content-Type: text/html\r\n\r\n${html(mark)}`, ["inline"]),
    of("image/gif", polyglot),
    of("text/javascript", ({ code }) => code),
    of("text/css", ({ beacon }) => `@import "${beacon}";*{background:url(${beacon})}`, ["inline"])
  ]
}
