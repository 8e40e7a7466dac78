/** URLs of texts. */
import { expect, it } from "vitest"
import { parseUrl } from "../../actors/index.ts"

it("parses, or is undefined", () => {
  expect(parseUrl("http://example.org")?.href).toBe("http://example.org/")
  expect(parseUrl("../x?y", "http://example.org/a/b/")?.href).toBe("http://example.org/a/x?y")
  for (const text of ["", "/x", "http://", "http://a b/", "x y"]) {
    expect(parseUrl(text)).toBeUndefined()
  }
})

it("parses hosts and paths beyond ASCII also when it is optimized", () => {
  const uri = "http://b\u00fccher.example/stra\u00dfe"
  // V8 optimizes a function after some thousand calls; URL.canParse was false from then on.
  const hosts = Array.from({ length: 20_000 }, () => parseUrl(uri)?.hostname)
  expect(new Set(hosts)).toEqual(new Set(["xn--bcher-kva.example"]))
})
