/** The parsers of bodies: XML, notifications, JSON, JSON-LD, forms, queries, files of customers. */
import { parseForm } from "../../../http/formats/form-fields.ts"
import { parseFragment, toJson, writeDocument } from "../../../http/formats/xml/index.ts"
import { formBytesMax } from "../../../http/limits.ts"
import { readNotification } from "../../../http/notification-body.ts"
import { filterOf } from "../../../http/query-engine/condition.ts"
import { queryElement, queryIn } from "../../../http/query-engine/query-document.ts"
import { CustomerFileParser, FileBroken,
  formats } from "../../../http/resources/customers/customer-files.ts"
import { linkedDataOf, readLinkedData } from "../../../http/resources/interop/linked-data.ts"
import { tableOf, tables } from "../../../http/resources/queries/query-forms.ts"
import { readableFragment } from "../../http/readable-fragment.ts"
import { bytesOf, must, mustEqual } from "./expecting.ts"
import type { Target } from "./fuzzer.ts"
import { parser } from "../../http/document-parser.ts"

const item = "<item><description>d &amp; e</description><url>http://a.test/1?b=c</url></item>"
const notification = `<notification>${item}</notification>`

const xmlTokens = [
  ..."<>/&;='\"",
  "<!--",
  "-->",
  "<![CDATA[",
  "]]>",
  "<?x y?>",
  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
  "<!DOCTYPE a [<!ENTITY b \"c\">]>",
  "&amp;",
  "&#0;",
  "&#xD800;",
  "&#x10FFFF;",
  "&b;",
  "xmlns=\"u:v\"",
  "xmlns:p=\"u:v\"",
  "p:q",
  "__proto__",
  "constructor",
  " xml:lang=\"en\"",
  "<a>",
  "</a>",
  "<a/>"
]

const xml: Target = {
  name: "xml",
  bytesMax: parser.limits.documentBytesMax,
  seeds: [notification, "<a b='c'><!-- d --><e/>f<![CDATA[g]]>&#104;</a>", "<p:a xmlns:p='u'/>"],
  tokens: xmlTokens,
  run: (input) => {
    const read = parser.parseXml(bytesOf(input), "application/xml")
    if (!read.ok) return must(read.fault.detail !== "", "a fault says what is wrong")
    const written = writeDocument(read.value)
    const again = parser.parseXml(Buffer.from(written), "application/xml")
    must(again.ok, "what was written is read")
    if (again.ok) mustEqual(writeDocument(again.value), written, "and is the same")
  }
}

const notificationTokens = [
  ...xmlTokens,
  ..."description url password content to from subject".split(" ").flatMap((name) => [
    `<${name}>`,
    `</${name}>`,
    `<${name}/>`
  ]),
  " type=\"text/plain\"",
  " encoding=\"base64\"",
  "http://a.test/"
]

const notifications: Target = {
  name: "notification",
  bytesMax: parser.limits.documentBytesMax,
  seeds: [
    notification,
    `<?xml version="1.0"?>\n<notification><to>http://b.test/</to>${item}</notification>`,
    "<notification><item><description>d</description><url/><content type='text/plain'>c</content>"
    + "<subject xmlns:p='u' p:q='r'>s</subject></item></notification>"
  ],
  tokens: notificationTokens,
  run: (input) => {
    const bytes = bytesOf(input)
    const read = readNotification(parser, bytes, "text/xml+rss")
    if (!read.ok) return
    must(parser.parseXml(bytes, "text/xml").ok, "a notification is a document")
    const fragment = readableFragment(read.value)
    must(parseFragment(fragment).length > 0, "what is stored is read")
    const again = parser.parseNotificationText(`<notification>${fragment}</notification>`)
    must(again.ok, "and is a notification")
    if (!again.ok) return
    const { description, url } = read.value
    mustEqual([again.value.description, again.value.url], [description, url], "the same one")
  }
}

const jsonTokens = [
  ..."{}[]:,\"\\",
  "\"\"",
  "null",
  "true",
  "1e999",
  "-0",
  "\\ud800",
  "\\u0000",
  "\"text\"",
  "\"item\":",
  "\"to\":",
  "\"__proto__\":",
  "\"constructor\":",
  "\"description\":",
  "\"url\":"
]

const json: Target = {
  name: "json",
  bytesMax: parser.limits.documentBytesMax,
  seeds: [
    "{\"item\":{\"description\":\"d\",\"url\":\"http://a.test/\"}}",
    "{\"notification\":{\"to\":[\"http://b.test/\"],\"item\":{\"description\":\"d\"}}}",
    "{\"item\":{\"content\":{\"type\":\"text/plain\",\"text\":\"c\"},\"n\":1,\"t\":true}}"
  ],
  tokens: jsonTokens,
  run: (input) => {
    const read = parser.parseJson("notification", bytesOf(input), "application/json")
    if (!read.ok) return
    const written = JSON.stringify(toJson(read.value))
    const again = parser.parseJson("notification", Buffer.from(written), "application/json")
    must(again.ok, "what was written is read")
    // Where text and elements are mixed, JSON does not tell their order.
    if (again.ok) mustEqual(toJson(again.value), toJson(read.value), "the same")
    must(parser.parseXml(Buffer.from(writeDocument(read.value)), "text/xml").ok, "it is XML too")
    readNotification(parser, bytesOf(input), "application/json")
  }
}

const linkedData: Target = {
  name: "json-ld",
  bytesMax: parser.limits.documentBytesMax,
  seeds: [
    "{\"@context\":\"https://www.w3.org/ns/activitystreams\",\"type\":\"Announce\","
    + "\"object\":\"http://a.test/1\",\"actor\":{\"id\":\"http://b.test/\"}}",
    "{\"@id\":\"http://a.test/\",\"@type\":[\"http://x.test/ns#Type\"],\"name\":\"<b>n</b> m\"}",
    "[{\"@graph\":[{\"as:summary\":{\"@value\":\"s\"}}]}]"
  ],
  tokens: [
    ...jsonTokens,
    "\"@id\":",
    "\"@type\":",
    "\"@value\":",
    "\"@graph\":",
    "\"@context\":",
    "\"object\":",
    "\"summary\":",
    "\"name\":",
    "<b>",
    "#"
  ],
  run: (input) => {
    const read = readLinkedData(parser, bytesOf(input), "application/ld+json")
    if (!read.ok) return
    const fragment = readableFragment(read.value)
    must(parseFragment(fragment).length > 0, "what is stored is read")
    const kept = linkedDataOf(fragment)
    must(kept !== undefined, "the document is kept")
    const isMarked = input.startsWith("\u00ef\u00bb\u00bf")
    mustEqual(kept?.text, bytesOf(input).toString("utf8").slice(isMarked ? 1 : 0), "as it came")
  }
}

const forms: Target = {
  name: "form",
  bytesMax: formBytesMax,
  seeds: [
    "description=d&url=http%3A%2F%2Fa.test%2F&to=http://b.test/%0D%0Ahttp://c.test/",
    "a=b+c"
  ],
  tokens: [..."&=%+", "%00", "%C3%A9", "%ED%A0%80", "description=", "url=", "content=", "to="],
  run: (input) => {
    const read = parseForm(input)
    if (read.ok) {
      const pairs = read.value.entries()
      const written = pairs.map((pair) => pair.map(encodeURIComponent).join("=")).join("&")
      const again = parseForm(written)
      // Longer, once it is escaped.
      if (written.length > formBytesMax || pairs.some(([name, value]) => name + value === "")) {
        return
      }
      must(again.ok, "what was written is read")
      if (again.ok) mustEqual(again.value.entries(), pairs, "the same fields")
    }
    readNotification(parser, bytesOf(input), "application/x-www-form-urlencoded")
  }
}

const queries: Target = {
  name: "query",
  bytesMax: parser.limits.documentBytesMax,
  seeds: [
    "<query on='customers'><where field='age' op='ge' value='21'/><return>name</return></query>",
    "<query on='customers'><all><any><where field='name' op='contains' value='a'/>"
    + "<not><where field='age' op='lt' value='3'/></not></any></all>"
    + "<order by='age' direction='descending'/><limit>10</limit></query>",
    "<query on='quotes'><title>t</title><where field='price' op='gt' value='1.50'/></query>"
  ],
  tokens: [
    ..."<>/'= ",
    ..."all any not where return order limit title".split(" ").flatMap((name) => [
      `<${name}>`,
      `</${name}>`
    ]),
    ..."eq ne lt le gt ge contains starts ends id name age symbol price currency updated".split(
      " "
    ),
    " by='age'",
    " direction='descending'",
    "99999999999999999999",
    "-0.0",
    "1e5"
  ],
  run: (input) => {
    const root = parser.parseXml(bytesOf(input), "application/xml")
    if (!root.ok) return
    const read = queryIn(tables, root.value)
    if (!read.ok) return must(read.fault !== "", "a fault says what is wrong")
    const query = read.value
    const again = queryIn(tables, queryElement(query))
    must(again.ok, "what was written is read")
    if (again.ok) mustEqual(again.value, query, "the same query")
    if (query.condition === undefined) return
    filterOf(tableOf(query), query.condition)({ name: "Ann", age: 30, price: "1.50" }, "a")
  }
}

const rowsIn = (format: typeof formats[number], pieces: ReadonlyArray<Uint8Array>) => {
  const rows: Array<unknown> = []
  const reader = new CustomerFileParser(parser, format, (row) => rows.push(row))
  try {
    for (const piece of pieces) reader.write(piece)
    reader.end()
  } catch (error) {
    if (!(error instanceof FileBroken)) throw error
    rows.push("broken")
  }
  return rows
}

const customers: Target = {
  name: "customers",
  bytesMax: parser.limits.documentBytesMax,
  seeds: [
    "0id,name,age\r\na,\"Ann \"\"A\"\"\",30\r\nb,Bob,40\r\n",
    "1{\"id\":\"a\",\"name\":\"Ann\",\"age\":30}\n{\"id\":\"b\"}\n",
    "2<customers><customer id='a'><name>Ann</name><age>30</age></customer></customers>",
    "3{\"customer\":[{\"id\":\"a\",\"name\":\"Ann\",\"age\":\"30\"}]}"
  ],
  tokens: [...xmlTokens, ...jsonTokens, ",", "\r\n", "\"\"", "<customer id='b'>", "</customer>"],
  run: (input) => {
    const format = formats[(input.charCodeAt(0) || 0) % formats.length]
    if (format === undefined) return
    const bytes = bytesOf(input.slice(1))
    const whole = rowsIn(format, [bytes])
    const at = Math.floor(bytes.length / 2)
    const pieces = rowsIn(format, [bytes.subarray(0, at), bytes.subarray(at)])
    // Rows before the unreadable part may have been reported, or not.
    if (whole.at(-1) === "broken") return mustEqual(pieces.at(-1), "broken", "in two pieces")
    mustEqual(pieces, whole, "in two pieces")
  }
}

export const documents: ReadonlyArray<Target> = [
  xml,
  notifications,
  json,
  linkedData,
  forms,
  queries,
  customers
]
