#!/usr/bin/env node
/**
 * `npm start`: installs and builds if necessary, then serves in this same process, so that signals
 * and the exit code need no forwarding. Uses only modules of Node.
 */
import { pathToFileURL } from "node:url"
import { buildIfStale, bundledMain, inRoot, installIfStale } from "./prepare.mjs"

installIfStale()
buildIfStale()

const main = inRoot(bundledMain)
process.argv = [process.argv[0], main, "serve", ...process.argv.slice(2)]
await import(pathToFileURL(main).href)
