#!/usr/bin/env node
/** `npm run build [project]`: compiles, and bundles the service with its command line. */
import { build } from "./prepare.mjs"

process.exitCode = build(process.argv[2] ?? ".") ? 0 : 1
