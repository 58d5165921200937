# Run by CPack on the installed tree before it is packed: adds what only a Debian package has, and puts
# into Debian's places and forms what other systems have elsewhere. Changes nothing else.

set(tree ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
set(from ${CPACK_GLOVE_SOURCE}/packaging)

function(stage source directory name)
  configure_file(${from}/${source} ${tree}${directory}/${name} COPYONLY FILE_PERMISSIONS
    OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

# Without the name and the time of the file, which differ from build to build.
function(compress file)
  execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${tree}/usr/share/doc/glove)
file(MAKE_DIRECTORY ${tree}/usr/share/zsh/vendor-completions)
file(RENAME ${tree}/usr/share/zsh/site-functions/_glove ${tree}/usr/share/zsh/vendor-completions/_glove)
file(REMOVE_RECURSE ${tree}/usr/share/zsh/site-functions)

stage(apparmor/glove /usr/share/glove/apparmor glove)
stage(debian/copyright /usr/share/doc/glove copyright)
stage(debian/changelog /usr/share/doc/glove changelog)
stage(debian/lintian-overrides /usr/share/lintian/overrides glove)

file(GLOB_RECURSE pages ${tree}/usr/share/man/*)
foreach(file ${tree}/usr/share/doc/glove/changelog ${pages})
  compress(${file})
endforeach()
