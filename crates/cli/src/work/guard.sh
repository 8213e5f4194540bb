# Outlives the program, and kills the process groups that it left running. Reads +ID when a group begins and -ID when
# it has ended. The end of the input is the end of the program, however it came about.
trap '' HUP INT TERM
groups=' '
while read -r line; do
    id=${line#?}
    case $line in
        +*) groups="$groups$id " ;;
        -*) groups="${groups%%" $id "*} ${groups#*" $id "}" ;;
    esac
done
for id in $groups; do kill -s KILL -- "-$id"; done
