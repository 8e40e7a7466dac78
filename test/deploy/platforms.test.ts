/** Compares docs/platforms.md with the binaries in the packages, which may change. */
import { readdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { loadNative } from "../../http/wire/native-module.ts"

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

/** A package of package-lock.json. */
interface Locked {
  readonly version: string
  readonly integrity?: string
  /** Of a folder of the project. */
  readonly link?: boolean
  readonly optional?: boolean
  readonly os?: ReadonlyArray<string>
  readonly cpu?: ReadonlyArray<string>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** The parsed text is package-lock.json, which npm wrote. */
const { packages } = JSON.parse(
  readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8")
) as { readonly packages: Readonly<Record<string, Locked>> }

/** Packages whose checksum could not be read when the lock was made: see docs/platforms.md. */
const unpinned = /(^|\/)node_modules\/(@uwsjs|@dprint)\/(?!linux-x64)[a-z0-9-]+$/

describe("package-lock.json", () => {
  it("pins every package by its checksum, except binaries of other platforms", () => {
    // The project itself, and those of its workspaces, are folders, with links to them.
    const foreign = Object.entries(packages)
      .filter(([path, { link }]) => path.includes("node_modules/") && link !== true)
    expect(foreign.length).toBeGreaterThan(300)
    const missing = foreign.flatMap(([path, { integrity, optional }]) =>
      integrity?.startsWith("sha512-") ? [] : [{ path, optional }]
    )
    const unexpected = missing.filter(({ optional, path }) => !optional || !unpinned.test(path))
    expect(unexpected).toEqual([])
    expect(missing.length).toBeLessThanOrEqual(45)
  })
})

describe("uWebSockets.js", () => {
  const major = process.versions.node.split(".")[0]
  const newer = Number(major) >= 24
  const serverVersion = newer ? "20.69.0" : "20.51.4"

  /** The locked package of a binary, as the package `host` requires it. */
  const lockedFor = (host: string, name: string): Locked | undefined => {
    const version = packages[`node_modules/${host}`]?.optionalDependencies?.[name]
    const nested = packages[`node_modules/${host}/node_modules/${name}`]
    return [nested, packages[`node_modules/${name}`]].find((one) => one?.version === version)
  }

  it.each([
    ["uws-node-20-22", ["20", "22"], ["linux-x64", "linux-arm64", "linux-arm"]],
    ["uws-node-20-22", ["20", "22"], ["darwin-arm64", "darwin-x64", "win32-x64"]],
    ["uws-node-24-26", ["24", "26"], ["linux-x64", "linux-arm64"]],
    ["uws-node-24-26", ["24", "26"], ["darwin-arm64", "darwin-x64", "win32-x64"]]
  ])("%s has binaries for Node %s on %s", (host, versions, platforms) => {
    for (const platform of platforms) {
      for (const version of versions) {
        const locked = lockedFor(host, `@uwsjs/${platform}-${version}`)
        expect([locked?.os, locked?.cpu], `${platform}-${version}`).toEqual([
          [platform.split("-")[0]],
          [platform.split("-")[1]]
        ])
        if (platform === "linux-x64") expect(locked?.integrity).toMatch(/^sha512-/)
      }
    }
  })

  it("has no binary for musl or Windows on arm64, nor of 32 bits for Node 24", () => {
    const names = ["uws-node-20-22", "uws-node-24-26"].flatMap((host) =>
      Object.keys(packages[`node_modules/${host}`]?.optionalDependencies ?? {})
    )
    expect(names.filter((name) => /musl|win32-arm|linux-arm-2[46]/.test(name))).toEqual([])
  })

  it(`is loaded in version ${serverVersion}`, () => {
    loadNative()
    const binaries = Object.keys(require.cache).filter((path) => path.endsWith("/uws.node"))
    const versions = binaries.map((path): unknown =>
      JSON.parse(readFileSync(join(dirname(path), "package.json"), "utf8")).version
    )
    expect(versions).toEqual([serverVersion])
    expect(page).toMatch(
      new RegExp(`\\| [0-9, ]*\\b${major}\\b[0-9, ]* +\\| ${serverVersion.replaceAll(".", "\\.")} `)
    )
  })

  it("needs the glibc of the page", () => {
    const folder = dirname(require.resolve(`@uwsjs/linux-x64-${major}`))
    expect(glibcOf(join(folder, "uws.node"))).toBe(newer ? 38 : 27)
    expect(page).toMatch(/\| 20, 22 +\| 20\.51\.4 +\| glibc 2\.27 or newer/)
    expect(page).toMatch(/\| 24, 26 +\| 20\.69\.0 +\| glibc 2\.38 or newer/)
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
})
