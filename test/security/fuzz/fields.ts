/** The parsers of header fields, paths, queries and cursors, and of other services' answers. */
import { isIP } from "node:net"
import { mailboxIn } from "../../../actors/outbound/discovery.ts"
import { retryAfterMaxMs, retryAfterMs } from "../../../actors/outbound/response.ts"
import { identityOf } from "../../../http/auth/credentials/credentials.ts"
import { isJwt } from "../../../http/auth/issuer/issuer.ts"
import { bodyKind, mediaTypeOf, negotiate, parseAccept } from "../../../http/formats/negotiation.ts"
import { standardTypes } from "../../../http/formats/representations.ts"
import { headerBlockBytesMax } from "../../../http/limits.ts"
import { chooseRange, evaluatePreconditions, httpDate, isIfRangeSatisfied,
  parseHttpDate } from "../../../http/pipeline/preconditions.ts"
import { Clients } from "../../../http/rates/client-address.ts"
import { compileRoutes } from "../../../http/pipeline/routing.ts"
import { decodeCursor, encodeCursor } from "../../../http/query-engine/query-run.ts"
import { parseCabinetSince } from "../../../http/resources/cabinets/cabinet-cursor.ts"
import { parseListingSince } from "../../../http/resources/mailboxes/listing/index.ts"
import { tables } from "../../../http/resources/queries/query-forms.ts"
import { traceparentOf } from "../../../http/trace-context.ts"
import { framingOf, type HttpRequest, RequestHeaders } from "../../../http/wire/request.ts"
import { bytesOf, must, mustEqual } from "./expecting.ts"
import type { Target } from "./fuzzer.ts"

const bytesMax = headerBlockBytesMax

const requestWith = (
  fields: Readonly<Record<string, string>>,
  remoteAddress = ""
): HttpRequest => ({
  method: "GET",
  path: "/",
  query: "",
  headers: new RequestHeaders(Object.entries(fields).flat()),
  remoteAddress
})

const accept: Target = {
  name: "accept",
  bytesMax,
  seeds: ["text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "application/json;charset=\"utf-8\""],
  tokens: [..."*/;,=\" q", "q=0.5", "q=1.0001", "*/*", "text/*", "application/json", "\\\""],
  run: (input) => {
    const chosen = negotiate(input, standardTypes)
    must(chosen === undefined || standardTypes.includes(chosen), "one of what is offered")
    for (const { q } of parseAccept(input)) must(q >= 0 && q <= 1_000, "thousandths")
    must([undefined, "xml", "json", "form"].includes(bodyKind(input)), "a known kind of body")
    mustEqual(mediaTypeOf(mediaTypeOf(input)), mediaTypeOf(input), "a bare type stays the same")
  }
}

const range: Target = {
  name: "range",
  bytesMax,
  seeds: ["bytes=0-4", "bytes=-5", "bytes = 3-", "bytes=0-1,3-4"],
  tokens: [..."-=, 0123456789", "bytes", "99999999999999", "items"],
  run: (input) => {
    for (const length of [0, 1, 10, 2 ** 40]) {
      const chosen = chooseRange(input, length)
      if (chosen._tag !== "Part") continue
      const { first, last } = chosen
      must(first >= 0 && first <= last && last < length, `a part of ${length} bytes`)
    }
  }
}

const etag = "\"abc\""
const conditions: Target = {
  name: "if-match",
  bytesMax,
  seeds: ["\"abc\"", "W/\"abc\", \"def\"", "*", "Sun, 06 Nov 1994 08:49:37 GMT", ",\"a\" , \"b\""],
  tokens: [..."\"W/*, ", "\"abc\"", "Sunday, 06-Nov-94 08:49:37 GMT", "GMT", "Nov", ":"],
  run: (input) => {
    const names = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"]
    for (const method of ["GET", "PUT"]) {
      for (const name of names) {
        const fields = { get: (asked: string) => asked === name ? input : undefined }
        const some = evaluatePreconditions(method, fields, {
          exists: true,
          etag,
          modifiedMs: 784_111_777_000
        })
        evaluatePreconditions(method, fields, { exists: false })
        if (method === "PUT") must(some !== "not-modified", "304 is for reading")
      }
    }
    isIfRangeSatisfied(input, { exists: true, etag, modifiedMs: 784_111_777_000 })
    const timeMs = parseHttpDate(input)
    if (timeMs !== undefined && Math.abs(timeMs) < 2 ** 47) {
      const whole = Math.floor(timeMs / 1_000) * 1_000
      if (whole >= 0) mustEqual(parseHttpDate(httpDate(whole)), whole, "a date stays the same")
    }
  }
}

const forwarded: Target = {
  name: "forwarded",
  bytesMax,
  seeds: ["203.0.113.7, 10.0.0.1", "\"[2001:db8::1]:443\", 10.1.2.3:80", "::ffff:192.0.2.1"],
  tokens: [..."[]:.,\" %", "::", "ffff:", "10.0.0.1", "2001:db8::", "%eth0", "for=", "unknown"],
  run: (input) => {
    for (const remote of ["10.0.0.9", "203.0.113.5", "fe80::1", input]) {
      for (const trusted of [[], ["10.0.0.0/8", "fe80::/10"]]) {
        const { address: client } = new Clients(trusted)
          .clientOf(requestWith({ "x-forwarded-for": input }, remote))
        const address = client.replace(/\/64$/, "")
        must(isIP(address) !== 0 || client === remote, "an address, or its network")
        if (remote === "203.0.113.5") mustEqual(client, remote, "nobody else is believed")
      }
    }
  }
}

const credentials: Target = {
  name: "authorization",
  bytesMax,
  seeds: ["Basic YWxpY2U6c2VjcmV0", "Bearer abc.def.ghi", "bearer eyJhbGciOiJFUzI1NiJ9.e30.c2ln"],
  tokens: ["Basic ", "Bearer ", "=", ":", "Og==", "."],
  run: (input) => {
    const identity = identityOf(requestWith({ authorization: input }))
    if (identity._tag === "Bearer") isJwt(identity.token)
    if (identity._tag === "Basic") must(!identity.user.includes(":"), "a name has no colon")
    traceparentOf(requestWith({ traceparent: input }))
  }
}

const match = compileRoutes([
  { pattern: "/mailboxes/{mailbox}/notifications/{notification}", methods: { GET: 1 } },
  { pattern: "/mailboxes/{mailbox}", methods: { GET: 2, POST: 3 } },
  { pattern: "/", methods: { GET: 4 } }
])

const paths: Target = {
  name: "path",
  bytesMax,
  seeds: ["/mailboxes/a%2Db~s/notifications/1", "/mailboxes/..%2f", "/", "//mailboxes/./a"],
  tokens: [..."/%.~", "%2f", "%00", "%5c", "..", "%C0%AF", "mailboxes", "notifications", "%ff"],
  run: (input) => {
    const found = match("GET", input)
    if (found._tag !== "Found") return
    for (const name of ["mailbox", "notification"]) {
      let value: string | undefined
      try {
        value = found.parameters.get(name)
      } catch {
        // The pattern has no such parameter.
        continue
      }
      // This pattern finds control characters.
      // oxlint-disable-next-line no-control-regex
      must(!/[\u0000-\u001f/\\]/.test(value ?? ""), "a segment is one segment")
      must(value !== "." && value !== "..", "and leads nowhere else")
    }
  }
}

const framing: Target = {
  name: "framing",
  bytesMax,
  seeds: [
    "host: a\ncontent-length: 5",
    "host: [::1]:80\ntransfer-encoding: chunked\nconnection: close",
    "content-length: 5\ncontent-length: 6"
  ],
  tokens: [
    "\n",
    ": ",
    "host",
    "content-length",
    "transfer-encoding",
    "chunked",
    "connection",
    "close"
  ],
  run: (input) => {
    const flat = input.split("\n").flatMap((line) => {
      const [name = "", ...rest] = line.split(": ")
      return [name, rest.join(": ")]
    })
    const { declaredBytes, refusal } = framingOf(
      { method: "POST", path: "/", query: "" },
      flat
    )
    if (refusal !== undefined) return
    const all = (name: string) => flat.filter((one, at) => at % 2 === 0 && one === name).length
    const coded = all("transfer-encoding")
    must(coded + Math.min(1, all("content-length")) <= 1, "one way to find the end")
    mustEqual(declaredBytes === -1, coded === 1, "chunked, or of a known length")
    must(declaredBytes >= -1 && Number.isSafeInteger(declaredBytes), "a length")
  }
}

const cursors: Target = {
  name: "cursor",
  bytesMax: 2_048,
  seeds: [
    "2024-02-29T12:00:00.123456789012345Z",
    "2024-01-01T00:00:00+01:00~7ps_1.2_",
    Buffer.from("[1,\"a\",30]").toString("base64url"),
    Buffer.from("[1,\"a\"]").toString("base64url")
  ],
  tokens: [..."-:.TZ~+", "WzEsImEiXQ", "00:00", "9999-12-31"],
  run: (input) => {
    parseListingSince(input)
    parseCabinetSince(input)
    for (const table of tables) {
      for (const by of [table.key, table.index?.field ?? table.key, "name"]) {
        const place = decodeCursor(table, { by, descending: false }, input)
        if (place === undefined) continue
        mustEqual(
          decodeCursor(table, { by, descending: false }, encodeCursor(place)),
          place,
          "the same"
        )
      }
    }
  }
}

const answers: Target = {
  name: "answer",
  bytesMax: 64 * 1024,
  seeds: [
    "<a.test>; rel=\"mailbox next\", <b>; rel=x",
    "<html><base href='http://b.test/'><link rel=mailbox href='/m?a&amp;b'></html>",
    "<script>'<a>'</script><!-- <link> --><a rel='x mailbox' href=http://c.test/>",
    "120",
    "Sun, 06 Nov 1994 08:49:37 GMT"
  ],
  tokens: [
    ..."<>;,=\"'/ &",
    "rel=",
    "mailbox",
    "href=",
    "<link ",
    "<a ",
    "<!--",
    "-->",
    "&amp;",
    "anchor="
  ],
  run: (input) => {
    const uri = new URL("http://a.test/x")
    for (const headers of [{ link: input }, { "content-type": "text/html" }]) {
      const found = mailboxIn(headers, bytesOf(input), uri)
      if (found !== undefined) must(/^https?:\/\/[^@]*$/.test(new URL(found).origin), "of the web")
    }
    const waitMs = retryAfterMs(input, 784_111_000_000)
    if (waitMs !== undefined) must(waitMs >= 0 && waitMs <= retryAfterMaxMs, "at most a day")
  }
}

export const fields: ReadonlyArray<Target> = [
  accept,
  range,
  conditions,
  forwarded,
  credentials,
  paths,
  framing,
  cursors,
  answers
]
