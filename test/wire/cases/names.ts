/** Cookies, which the service ignores here, and field names that another reader normalizes. */
import { answeredBy, bad, get, post, servedBy, type WireCase } from "./case.ts"

const served = servedBy(200)
const eleven = (field: string): string => `${post("Content-Length: 11", field)}hello world`
const whole = { stores: "hello world" }

const cookies: ReadonlyArray<WireCase> = [
  served("a cookie", get("Cookie: foo=bar"), { "COOK-ECHO": "2xx", "COOK-PARSED-BASIC": "2xx" }),
  served("three cookies", get("Cookie: a=1; b=2; c=3"), { "COOK-PARSED-MULTI": "2xx" }),
  served("two fields of cookies", get("Cookie: a=1", "Cookie: b=2"), {
    "COOK-MULTI-HEADER": "2xx|400|close"
  }),
  served("a field without a cookie", get("Cookie: "), { "COOK-EMPTY": "2xx|400|close" }),
  served("a cookie without a value", get("Cookie: foo="), {
    "COOK-PARSED-EMPTY-VAL": "2xx|400|close"
  }),
  served("cookies with spaces and signs", get("Cookie: a=hello world; b=x=y"), {
    "COOK-PARSED-SPECIAL": "2xx|400|close"
  }),
  served("signs without a cookie", get("Cookie: ===;;;"), { "COOK-MALFORMED": "2xx|400|close" }),
  served(
    "1,000 cookies",
    get(`Cookie: ${Array.from({ length: 1_000 }, (_, n) => `k${n}=v${n}`).join("; ")}`),
    { "COOK-MANY-PAIRS": "2xx|400|431|close" }
  ),
  answeredBy(431)("a cookie of 64 KiB", get(`Cookie: big=${"A".repeat(65_536)}`), {
    "COOK-OVERSIZED": "2xx|400|431|close"
  }),
  bad("NUL in a cookie", get("Cookie: foo=\0bar"), { "COOK-NUL": "400|close" }),
  bad("control characters in a cookie", get("Cookie: foo=\x01\x02\x03"), {
    "COOK-CONTROL-CHARS": "400|close"
  })
]

/** A length that differs, in a name that a lenient reader takes for Content-Length. */
const otherNames: ReadonlyArray<WireCase> = [
  servedBy(202)("an underscore in Content_Length", eleven("Content_Length: 99"), {
    "NORM-UNDERSCORE-CL": "2xx|4xx|close"
  }, whole),
  bad("a space behind a second Content-Length", eleven("Content-Length : 5"), {
    "NORM-SP-BEFORE-COLON-CL": "2xx|4xx|close"
  }),
  bad("a tab for the hyphen of Content-Length", eleven("Content\tLength: 99"), {
    "NORM-TAB-IN-NAME": "2xx|4xx|close"
  }),
  bad("Transfer-Encoding in capitals, and a length", eleven("TRANSFER-ENCODING: chunked"), {
    "NORM-CASE-TE": "2xx|4xx|close"
  }),
  servedBy(202)("Transfer_Encoding, and a length", eleven("Transfer_Encoding: chunked"), {
    "NORM-UNDERSCORE-TE": "2xx|4xx|close"
  }, whole)
]

export const names: ReadonlyArray<WireCase> = [...cookies, ...otherNames]
