import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The page is served under a policy that allows nothing inline, so nothing may be inlined: no small
// files as data addresses, no preload helper.
export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: "dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    reportCompressedSize: false,
    cssTarget: ["chrome123", "firefox121", "safari17.5"],
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8642", "/healthz": "http://127.0.0.1:8642" } },
});
