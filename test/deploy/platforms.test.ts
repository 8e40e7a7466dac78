/** Compares docs/platforms.md with the binaries in the packages, which may change. */
import { readdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const require = createRequire(import.meta.url)

const folderOf = (name: string) => dirname(require.resolve(`${name}/package.json`))

const page = readFileSync(
  fileURLToPath(new URL("../../docs/platforms.md", import.meta.url)),
  "utf8"
)

/** The newest glibc version that an object requires. */
const glibcOf = (path: string): number => {
  const names = readFileSync(path, "latin1").matchAll(/GLIBC_2\.(\d+)/g)
  return Math.max(...Array.from(names, ([, minor]) => Number(minor)))
}

describe("uWebSockets.js", () => {
  const folder = folderOf("uWebSockets.js")
  /** Versions of Node's modules: 20, 22, 24, 25. */
  const modules = [115, 127, 137, 141]

  it.each(["linux_x64", "linux_arm64", "darwin_arm64", "darwin_x64", "win32_x64"])(
    "has a binary for %s",
    (platform) => {
      const names = readdirSync(folder)
      expect(names).toEqual(
        expect.arrayContaining(modules.map((version) => `uws_${platform}_${version}.node`))
      )
    }
  )

  it("needs the glibc of the page, and has none for musl or Windows on arm64", () => {
    for (const arch of ["x64", "arm64"]) {
      const glibc = modules.map((version) =>
        glibcOf(join(folder, `uws_linux_${arch}_${version}.node`))
      )
      expect(glibc).toEqual([27, 38, 38, 38])
    }
    const arm = readdirSync(folder).filter((name) => /^uws_linux_arm_(115|127|137|141)/.test(name))
    expect(arm).toEqual(["uws_linux_arm_115.node"])
    expect(readdirSync(folder).filter((name) => /musl|win32_arm/.test(name))).toEqual([])
    expect(page).toContain("| 20      | glibc 2.27 or newer")
    expect(page).toContain("| 24, 25  | glibc 2.38 or newer")
  })
})

it("RocksDB's binding has binaries for two platforms", () => {
  const folder = join(folderOf("@nxtedition/rocksdb"), "prebuilds")
  expect(readdirSync(folder).sort()).toEqual(["darwin-arm64", "linux-x64"])
  const [name = ""] = readdirSync(join(folder, "linux-x64"))
  expect(glibcOf(join(folder, "linux-x64", name))).toBe(34)
  expect(page).toContain("LevelDB below glibc 2.34")
})

it("LevelDB's binding has binaries for the others", () => {
  const folder = join(folderOf("classic-level"), "prebuilds")
  const platforms = readdirSync(folder)
  for (const one of ["darwin-x64+arm64", "linux-arm", "linux-arm64", "linux-x64", "win32-x64"]) {
    expect(platforms).toContain(one)
  }
  const x64 = readdirSync(join(folder, "linux-x64"))
  expect(x64.sort()).toEqual(["classic-level.musl.node", "classic-level.node"])
  expect(glibcOf(join(folder, "linux-x64", "classic-level.node"))).toBe(28)
  expect(readdirSync(join(folder, "linux-arm64"))).toEqual(["classic-level.armv8.node"])
  expect(page).toContain("LevelDB's needs glibc 2.28")
})

it("the image keeps the binaries of its own platform", () => {
  const dockerfile = readFileSync(
    new URL("../../deploy/manifests/Dockerfile", import.meta.url),
    "utf8"
  )
  expect(dockerfile).toContain("linux-$(node -p process.arch)")
  expect(dockerfile).toContain("uws_linux_$(node -p process.arch)_")
})
